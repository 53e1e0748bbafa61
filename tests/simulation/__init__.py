"""Seeded simulation of persist, Storage and the timestamp oracle.

The real code on virtual clocks, with bad storage.

    python -m tests.simulation --seed 7 --trace

Law: the same seed gives the same trace, in every process.
"""
