"""Compute: views on Spark, exact at every time."""
