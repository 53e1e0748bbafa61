"""The remap as a collection of rows: one row per element of the source's frontier.

    partition   the partition as JSON (7, "a.json"), or a range of partitions: (,7) [8,) [8,12) (,)
    offset      how far it is complete

A range stands for partitions that are not known yet, all at that offset. So the rows at any time
are exactly the antichain that the source had reached, and can be turned back into it.

Law: ``element_of(row_of(e)) == e`` for every element e.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from noonmark.errors import InvalidValue
from noonmark.remap.binding import Remap
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain, Interval, Partition, Partitioned, Update

REMAP_SCHEMA = Schema.of(partition="text not null", offset="bigint not null")

_STRING = r'"(?:[^"\\]|\\.)*"'
_RANGE = re.compile(rf"[\[(](-?\d+|{_STRING})?,(-?\d+|{_STRING})?\)")


def row_of(element: Partitioned) -> tuple[str, int]:
    """A row of the remap collection."""
    one = element.interval.partition()
    if one is not None:
        return json.dumps(one), element.offset
    lower, upper = element.interval.lower, element.interval.upper
    start = "(" if lower is None else "[" + json.dumps(lower)
    end = "" if upper is None else json.dumps(upper)
    return f"{start},{end})", element.offset


def element_of(row: tuple[str, int]) -> Partitioned:
    """The element that a row stands for."""
    text, offset = row
    found = _RANGE.fullmatch(text)
    if found is None:
        return Partitioned.at(_partition(text), offset)
    lower, upper = (None if bound is None else _partition(bound) for bound in found.groups())
    return Partitioned(Interval(lower, upper), offset)


def _partition(text: str) -> Partition:
    try:
        partition = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidValue(f"{text!r} is not a partition") from error
    if isinstance(partition, bool) or not isinstance(partition, int | str):
        raise InvalidValue(f"{text!r} is not a partition")
    return partition


def to_rows(updates: Iterable[Update[Partitioned, int]]) -> list[Update[tuple[str, int], int]]:
    """Updates of frontiers as updates of rows."""
    return [Update(row_of(element), time, diff) for element, time, diff in updates]


def from_rows(
    rows: Iterable[Update[tuple[str, int], int]], since: Antichain[int], upper: Antichain[int]
) -> Remap[Partitioned]:
    """The remap that was stored, exact for the times in [since, upper)."""
    updates = [Update(element_of(row), time, diff) for row, time, diff in rows]
    return Remap.from_updates(updates, since, upper)
