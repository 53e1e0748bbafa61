"""Sinks: a collection's changes, written to Kafka exactly once.

`envelope` makes messages of updates, `encode` makes bytes of rows, `kafka` writes both and the
progress in one transaction, `run` keeps a sink going.
"""
