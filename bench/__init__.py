"""Figures: every number that Noonmark states of itself, as a command that prints it again.

A figure is one file: ``bench/f*.py`` for speed, ``tests/prove/c*.py`` for certainty. It defines
``main(argv) -> dict`` (see `bench.figure.Figure` for the fields) and runs alone too
(``python bench/f1_bulk_write.py --seed 7``). ``python -m bench`` finds and runs them all.
"""
