"""Ingestion: a source becomes definite collections on the timeline, tick by tick.

ingestion     one source: probe, bind, read, write, one tick after the other
loop          many sources, each in a thread of its own
feed          how one output of a source becomes one collection
engine, task  who reads: this process or executors, and what they do
stage         a table read again beside an ingestion that goes on
truncate      TRUNCATE upstream: what the collection held is retracted
ends          definite errors that end the outputs of a source
"""
