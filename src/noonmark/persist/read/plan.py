"""What to open for a read: pure planning over the state.

A read is of one collection, over times ``after < t <= as_of``; it may ask for some columns, for
rows whose columns lie in ranges, or for rows of given keys. The plan is the batches and parts
that can hold such rows, by their statistics: nothing else is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from noonmark.errors import SchemaMismatch, UsageError
from noonmark.persist.log.definite import first_error, refusal
from noonmark.persist.log.refusals import before_since
from noonmark.persist.log.state import Batch, Collection
from noonmark.persist.part.order import distinct
from noonmark.persist.part.part import Part
from noonmark.persist.part.ranges import KeyRange
from noonmark.persist.part.statistics import has_physical, physical
from noonmark.rows import arrow

Range = tuple[Any, Any]


@dataclass(frozen=True)
class Query:
    """What a read wants.

    Attributes:
        as_of: the last time.
        after: the time before the first; None for all there is.
        columns: the columns to return; None for all.
        where: inclusive ranges by column, None for an open end.
        keys: values of the key; for a key of several columns, tuples (a prefix will do).
        within: the key range that this read is confined to; None for all rows.
        despite_error: for maintenance alone: rows as they were known last, also at times at which
            the collection is in a definite error.
    """

    as_of: int
    after: int | None = None
    columns: tuple[str, ...] | None = None
    where: Mapping[str, Range] = field(default_factory=dict)
    keys: Sequence[Any] | None = None
    within: KeyRange | None = None
    despite_error: bool = False


@dataclass(frozen=True)
class Probes:
    """Keys as columns: the values to look for, one array per column of the key's prefix.

    `first` has the distinct values of the first column, `physical` the same as statistics know
    them: ascending, None last; None where statistics know nothing of such values.
    """

    names: tuple[str, ...]
    arrays: tuple[pa.Array, ...]
    first: pa.Array
    physical: tuple[Any, ...] | None


@dataclass(frozen=True, eq=False)
class Plan:
    """The parts and inline batches that a read opens, at the state of one log entry."""

    seqno: int
    collection: Collection
    query: Query
    probes: Probes | None
    runs: tuple[tuple[Part, ...], ...]
    inline: tuple[Batch, ...]

    @property
    def bytes(self) -> int:
        """The size of everything the plan opens."""
        parts = sum(part.bytes for run in self.runs for part in run)
        return parts + sum(batch.bytes for batch in self.inline)

    @property
    def parts(self) -> list[Part]:
        """Every part of every run."""
        return [part for run in self.runs for part in run]


def plan_read(seqno: int, collection: Collection, query: Query) -> Plan:
    """Choose what to open. Every read of rows is planned here, whoever reads.

    Raises:
        BeforeSince: the times asked for are not all readable.
        DefiniteError: the collection is in error at one of them.
    """
    # No update is before time 0: all changes from there on are known while since is there.
    earliest = query.as_of if query.after is None else max(query.after, 0)
    if not collection.since.less_equal(earliest):
        raise before_since(collection, earliest)
    if collection.errors and not query.despite_error:
        check_answers(collection, query.as_of, query.after)
    schema = collection.schema
    for name in (*(query.columns or ()), *query.where):
        if name not in schema.names:
            raise SchemaMismatch(
                f'"{collection.name}" has no column "{name}"',
                detail=f"Its columns are {', '.join(schema.names)}.",
                hint="Ask for those, or evolve the collection first.",
                column=name,
            )
    probes = None if query.keys is None else _probes(collection, query.keys)
    batches = [batch for batch in collection.batches if _in_time(batch, query)]
    runs = (tuple(p for p in b.parts if _wanted(collection, p, query, probes)) for b in batches)
    return Plan(
        seqno=seqno,
        collection=collection,
        query=query,
        probes=probes,
        runs=tuple(run for run in runs if run),
        inline=tuple(batch for batch in batches if batch.inline is not None),
    )


def check_answers(collection: Collection, as_of: int, after: int | None = None) -> None:
    """Raise the definite error of a collection at a time, or at one after `after` and up to it."""
    found = first_error(collection.errors, as_of if after is None else after + 1, as_of)
    if found is not None:
        raise refusal(collection.name, found, as_of)


def _in_time(item: Batch | Part, query: Query) -> bool:
    return item.time_min <= query.as_of and (query.after is None or item.time_max > query.after)


def _wanted(collection: Collection, part: Part, query: Query, probes: Probes | None) -> bool:
    if not _in_time(part, query) or (query.within and not query.within.may_hold(part)):
        return False
    names = [column.name for column in collection.schemas[part.schema_id]]
    ranges = {}
    for name, (low, high) in query.where.items():
        if name not in names:
            return False  # the part is older than the column: all NULL, which lies in no range
        kind = collection.schema[name].type
        ranges[names.index(name)] = tuple(physical(arrow.to_array([low, high], kind)))
    if ranges and not part.may_match(ranges=ranges):
        return False
    if probes is None or probes.physical is None:
        return True
    return part.may_hold(names.index(probes.names[0]), probes.physical)


def _probes(collection: Collection, keys: Sequence[Any]) -> Probes:
    if not collection.key:
        raise UsageError(
            f'"{collection.name}" has no key to look rows up by',
            hint="Give it a key when it is created, or read with ranges.",
            collection=collection.name,
        )
    tuples = [key if isinstance(key, tuple) else (key,) for key in keys]
    width = len(tuples[0]) if tuples else 1
    if any(len(key) != width for key in tuples) or width > len(collection.key):
        raise UsageError(
            "keys to look up must be tuples of one length",
            detail=f'The key of "{collection.name}" is ({", ".join(collection.key)}).',
            hint="Give all of them the same first columns of the key.",
            collection=collection.name,
        )
    names = collection.key[:width]
    schema = collection.schema
    arrays = tuple(
        arrow.to_array([key[at] for key in tuples], schema[name].type)
        for at, name in enumerate(names)
    )
    first = distinct(arrays[0])
    if not has_physical(first.type):
        return Probes(names, arrays, first, None)
    known = physical(first)
    ordered = sorted(value for value in known if value is not None)
    return Probes(names, arrays, first, (*ordered, *([None] if None in known else [])))
