"""Which partition of a Kafka source stands for what. The numbers are stored: they stay.

    partition p of the topic     p
    the source as a whole        -1; its offset says what ended it
    the fate of partition p      -2 - p; its offset says what ended it

That is the first incarnation of the topic, 0. One that is read anew, from its beginning, is another
one: its partitions lie `PARTITIONS_MAX` further from zero for each before it. So offsets of two
incarnations are never compared, and what ended one says nothing about the next.

Law: ``of(at(n, g), g) == n``, and ``of(at(n, g), h)`` is None for every other h.
"""

from __future__ import annotations

from noonmark.source.contract import PARTITIONS_MAX
from noonmark.tvc import Partition

#: The number that stands for the source as a whole.
WHOLE = -1


def fate(partition: int) -> int:
    """The number that stands for what ended a partition; undoes itself."""
    return -2 - partition


def at(number: int, incarnation: int) -> int:
    """The partition of a number in an incarnation."""
    away = incarnation * PARTITIONS_MAX
    return number + away if number >= 0 else number - away


def of(partition: Partition, incarnation: int) -> int | None:
    """The number of a partition, if it is one of that incarnation."""
    away = int(partition)
    found, number = divmod(away if away >= 0 else -1 - away, PARTITIONS_MAX)
    if found != incarnation:
        return None
    return number if away >= 0 else -1 - number
