"""Arrangements: what operators have to remember, kept sorted by the key by which they ask for it.

An operator asks for the old rows of an input by key, or for the accumulators of a group. A
collection that is sorted by that key already answers itself; for everything else there is an
arrangement: an internal collection that is hydrated, and then changed in the same commits, as the
view that needs it. So at every time it is exactly what its definition says.

Where it runs: driver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute import aggregates, keyed
from noonmark.compute.frame import ERROR, rows_of
from noonmark.compute.linear import extended, filtered, projected
from noonmark.compute.native import EXACT
from noonmark.persist.run import DIFF, TIME
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import ColumnRef, Scalar, map_columns, may_fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from noonmark.compute.batch import Batch


@dataclass(frozen=True)
class Need:
    """The rows of a relation by a key, or (`sums`) the accumulators of an aggregation."""

    relation: r.Relation
    key: tuple[Scalar, ...]
    sums: bool = False

    @property
    def digest(self) -> str:
        """The same for the same need, in every process."""
        text = repr((self.relation, self.key, self.sums))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Keeper:
    """The collection that answers a need.

    Attributes:
        need: what is asked of it: the need it serves, or that of the collection below the filters
            and projections of the need, which are then applied to what is found.
        name: of the collection.
        schema: its columns: those of the relation, and then what the key adds.
        key: the names of the columns that a look-up gives values for, in the order of the
            collection's key.
        order: for each of them, the part of the need's key that it is.
        own: whether it is an arrangement, and ours to write.
    """

    need: Need
    name: str
    schema: Schema
    key: tuple[str, ...]
    order: tuple[int, ...]
    own: bool

    @property
    def added(self) -> tuple[Scalar, ...]:
        """The parts of the key that are no columns of the relation."""
        return tuple(each for each in self.need.key if not isinstance(each, ColumnRef))

    def stored(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame of the relation (or of the accumulators), as they are stored."""
        if self.need.sums or not self.added:
            return rows_of(frame)
        width = len(self.need.relation.schema)
        made = rows_of(extended(frame, width, self.added, "k"))
        columns = [f.col(f"c{at}") for at in range(width)]
        columns += [f.col(f"k{at}").alias(f"c{width + at}") for at in range(len(self.added))]
        rest = [name for name in (ERROR, TIME, DIFF) if name in made.columns]
        return made.select(*columns, *rest)

    def contents(self, batch: Batch) -> DataFrame:
        """All of it at the time of a batch."""
        if self.need.sums:
            assert isinstance(self.need.relation, r.Aggregate)
            source = batch.frame(self.need.relation.input)
            fails = batch.fails(self.need.relation)
            sums = aggregates.accumulated(self.need.relation, source, fails=fails)
            return rows_of(sums, fails)
        return self.stored(batch.frame(self.need.relation))


def keeper(view: str, need: Need, keys: Mapping[str, tuple[str, ...]]) -> Keeper:
    """What answers a need of a view; `keys` are the keys of the collections it reads."""
    base = base_need(need)
    if isinstance(base.relation, r.Scan):
        order = _as_stored(base, keys.get(base.relation.collection, ()))
        if order is not None:
            schema, name = base.relation.schema, base.relation.collection
            return Keeper(base, name, schema, tuple(schema.names[i] for i, _ in order),
                          tuple(at for _, at in order), own=False)  # fmt: skip
        need = base_need(need, slim=True)
    name = f"{view}_arrangement_{need.digest}"
    if need.sums:
        assert isinstance(need.relation, r.Aggregate)
        schema = aggregates.accumulator_schema(need.relation)
        count = len(need.relation.keys)
        return Keeper(need, name, schema, schema.names[:count], tuple(range(count)), own=True)
    return _arranged(name, need)


def base_need(need: Need, *, slim: bool = False) -> Need:
    """The same rows asked of the collection below filters and projections, if there is one.

    So views that filter one collection in many ways need one arrangement of it, or none: its own
    key may serve. And its changes are at hand, where those of a filter cost a job to know. With
    `slim`, columns that are only left out stay left out: an arrangement does not need them.
    """
    relation, key = need.relation, need.key
    while not need.sums:
        match relation:
            case r.Scan():
                return Need(relation, key)
            case r.Filter():
                relation = relation.input
            case r.Project(scalars=scalars):
                if slim and picks(relation):
                    return Need(relation, key)
                key = tuple(map_columns(part, partial(_under, scalars)) for part in key)
                if any(may_fail(part) for part in key):
                    return need
                relation = relation.input
            case _:
                return need
    return need


def _under(scalars: tuple[Scalar, ...], ref: ColumnRef) -> Scalar:
    return scalars[ref.index]


def picks(relation: r.Relation) -> bool:
    """Whether it is some columns of a collection, and nothing else."""
    return (
        isinstance(relation, r.Project)
        and isinstance(relation.input, r.Scan)
        and all(isinstance(scalar, ColumnRef) for scalar in relation.scalars)
    )


def through(relation: r.Relation, base: r.Relation, frame: DataFrame) -> DataFrame:
    """The filters and projections between a relation and its base, applied to rows of the base."""
    if relation == base:
        return frame
    match relation:
        case r.Filter():
            return filtered(relation, through(relation.input, base, frame))
        case r.Project():
            return projected(relation, through(relation.input, base, frame))
    raise AssertionError(f"{type(relation).__name__} does not stand above its base")


def _as_stored(need: Need, key: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Column and part of the key, in the order of the collection's own key, if that serves."""
    asked = {part.index: at for at, part in enumerate(need.key) if isinstance(part, ColumnRef)}
    if len(asked) < len(need.key) or len(asked) > len(key):
        return None
    first = [need.relation.schema.index(name) for name in key[: len(asked)]]
    return [(i, asked[i]) for i in first] if set(first) == set(asked) else None


def _arranged(name: str, need: Need) -> Keeper:
    width = len(need.relation.schema)
    columns = [Column(f"c{at}", each.type) for at, each in enumerate(need.relation.schema)]
    key, added = [], 0
    for part in need.key:
        if isinstance(part, ColumnRef):
            key.append(f"c{part.index}")
            continue
        columns.append(Column(f"c{width + added}", part.type))
        key.append(f"c{width + added}")
        added += 1
    # A column that is asked for twice sorts once.
    order = [at for at, column in enumerate(key) if column not in key[:at]]
    return Keeper(
        need, name, Schema(tuple(columns)), tuple(key[at] for at in order), tuple(order), own=True
    )


def needs(relation: r.Relation) -> Iterator[Need]:
    """Everything that the delta rules of a plan have to ask for, from the bottom."""
    if not isinstance(relation, r.Recursive):
        for below in r.relations_below(relation):
            yield from needs(below)
    yield from own_needs(relation)


def own_needs(node: r.Relation) -> tuple[Need, ...]:
    """What the delta rule of one operator asks for."""
    if isinstance(node, r.Join) and node.kind is r.JoinKind.INNER:
        used = [key for key in node.keys if _looked_up(key)]
        return (
            Need(node.left, tuple(key.left for key in used)),
            Need(node.right, tuple(key.right for key in used)),
        )
    if isinstance(node, r.Aggregate) and aggregates.is_linear(node):
        return (Need(node, node.keys, sums=True),)
    if keyed.is_known(node):
        return tuple(Need(part.relation, part.key) for part in keyed.parts_of(node))
    return ()


def _looked_up(key: r.JoinKey) -> bool:
    """Whether equal values of both sides are stored alike, so that a look-up finds them."""
    return isinstance(key.left.type, EXACT) and isinstance(key.right.type, EXACT)
