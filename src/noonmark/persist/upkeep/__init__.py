"""Upkeep: what a client does by itself, beside reads and writes.

loop       when it is done
compact    batches rewritten as one
gc         objects that nobody can need any more, deleted
"""
