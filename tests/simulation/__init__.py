"""Seeded simulation of persist: the real code on a virtual clock, with bad storage.

    python -m tests.simulation --seed 7 --trace

Law: the same seed gives the same trace, in every process.
"""
