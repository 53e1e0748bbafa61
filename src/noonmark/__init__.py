"""Noonmark: SQL views over changing data, exact at every time, maintained on Spark."""
