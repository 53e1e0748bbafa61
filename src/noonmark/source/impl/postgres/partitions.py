"""Which partition of a PostgreSQL source stands for what. The numbers are stored: they stay.

    the log                  0; of a later slot g (`Postgres.generation`), g << 32
    the source as a whole    -1; of a later slot, -1 - (g << 32); its offset says what ended it
    the fate of output k     k + 1; its offset says what ended it
    output k has joined      -2 - k; a table that was read later than the others is in the stream

Outputs are numbered once: a table that is refreshed is another output, and what ended the old one
says nothing about it. So is a slot: what ended the source under an earlier one is over.
"""

from __future__ import annotations

from noonmark.source.contract import PARTITIONS_MAX


def log(generation: int) -> int:
    """The partition of the log."""
    return generation * PARTITIONS_MAX


def whole(generation: int) -> int:
    """The partition that stands for the source as a whole."""
    return -1 - generation * PARTITIONS_MAX


def fate(output: int) -> int:
    """The partition that stands for what ended an output."""
    return output + 1


def fated(partition: int) -> int | None:
    """The output whose fate a partition stands for; None when it stands for something else."""
    return partition - 1 if 0 < partition < PARTITIONS_MAX else None


def joined(output: int) -> int:
    """The partition that is bound, once, when an output joins the stream."""
    return -2 - output
