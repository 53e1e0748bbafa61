"""Fixtures come from the modules of tests/support, one per kind of neighbour."""

pytest_plugins = [
    "support.places",
    "support.racers",
    "support.servers",
    "support.spark",
    "support.logical",
    "support.kafka",
    "support.registry",
]
