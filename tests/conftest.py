"""Fixtures come from the modules of tests/support, one per kind of neighbour."""

pytest_plugins = ["support.servers", "support.spark"]
