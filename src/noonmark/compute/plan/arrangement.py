"""Arrangements: what operators have to remember, kept sorted by the key by which they ask for it.

Almost everything that a delta rule asks for is asked of the inputs by key (`pushdown`). The rest is
kept by arrangements: the accumulators of linear aggregates, what waits for its turn in a temporal
filter, and relations that are asked for as a whole. An arrangement is an internal collection that
is hydrated, and then changed in the same commits, as the views that need it. So it is exactly what
its definition says whenever one of them is brought up to a time.

Views with the same spec share its arrangement (`noonmark.compute.view.owned`). What waits for its
turn is each view's own: what has come and gone within one tick was never there.

Law (names): two needs have one digest only if they are equal, and equal needs have one digest in
every process and every version that stores the same for them. It is made of the canonical encoding
of the plan (`noonmark.sql.ir.encoding`). Whoever changes what is stored for a spec, say the columns
of accumulators, raises `STORED_VERSION`: views then get arrangements of the new kind
(`noonmark.compute.view.adoption`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from noonmark.compute.kernel.accumulator import accumulator_schema
from noonmark.compute.plan.multiway import Keys
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.plan.pushdown import asked_whole, is_whole, operators
from noonmark.compute.trace.pending import TURN, turns_schema
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.encoding import encode

#: Of what arrangements hold for a spec: their columns, and how values are kept in them.
STORED_VERSION = 1
_WHOLE, _SUMS, _TURNS = 1, 2, 3


@dataclass(frozen=True)
class ArrangementSpec:
    """A relation as a whole, the accumulators of an aggregation, or what waits in a filter."""

    relation: r.Relation
    sums: bool = False
    turns: bool = False

    @cached_property
    def digest(self) -> str:
        """The same for the same spec, in every process; and for no other."""
        kind = _TURNS if self.turns else _SUMS if self.sums else _WHOLE
        text = bytes([STORED_VERSION, kind]) + encode(self.relation)
        return hashlib.blake2b(text, digest_size=16).hexdigest()

    @property
    def can_be_shared(self) -> bool:
        """Whether its arrangement is the same at every time, whatever the ticks were."""
        return not self.turns


@dataclass(frozen=True)
class Arrangement:
    """The arrangement that answers a spec.

    Attributes:
        spec: what it keeps.
        name: of its collection.
        schema: its columns: those of the relation, or the accumulators.
        key: the columns that it is sorted by.
    """

    spec: ArrangementSpec
    name: str
    schema: Schema
    key: tuple[str, ...]


def arrangement_of(name: str, spec: ArrangementSpec) -> Arrangement:
    """The arrangement of that name, which answers a spec."""
    if spec.sums:
        assert isinstance(spec.relation, r.Aggregate)
        schema = accumulator_schema(spec.relation)
        return Arrangement(spec, name, schema, schema.names[: len(spec.relation.keys)])
    if spec.turns:
        return Arrangement(spec, name, turns_schema(spec.relation), (TURN,))
    columns = [Column(f"c{at}", each.type) for at, each in enumerate(spec.relation.schema)]
    return Arrangement(spec, name, Schema(tuple(columns)), ())


def arrangement_specs(plan: r.Relation, keys: Keys) -> Iterator[ArrangementSpec]:
    """Everything that has to be kept for the delta rules of a plan, each once, from the bottom."""
    seen: set[ArrangementSpec] = set()
    for node in operators(plan):
        for spec in own_specs(node, keys):
            if spec not in seen:
                seen.add(spec)
                yield spec


def own_specs(node: r.Relation, keys: Keys) -> Iterator[ArrangementSpec]:
    """What has to be kept for the delta rule of one operator."""
    way = operator_of(node).way(node)
    if way is Way.SUMS:
        yield ArrangementSpec(node, sums=True)
    if way is Way.TURNS:
        yield ArrangementSpec(node, turns=True)
    if way is Way.KEPT:
        yield ArrangementSpec(node)
    for relation in asked_whole(node, keys):
        if not is_whole(relation):
            yield ArrangementSpec(relation)
