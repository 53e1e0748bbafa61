"""Keys of operators: what can be asked of an operator for some rows of its inputs alone.

A *key* of an operator is a function of the rows of its inputs such that rows with different keys
have nothing to do with each other:

    op(R) = the sum of op(R where key = k) over all k

So an operator may be asked of some keys alone. Columns whose stored values may differ though they
are equal in SQL (intervals, floats, documents, plain numerics) are in keys by their canonical form
(`noonmark.sql.functions.key`), which is the same for equal values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from noonmark.compute.plan.memo import once
from noonmark.compute.plan.operators import operator_of
from noonmark.rows.arrow import arrow_type
from noonmark.rows.exact import is_exact
from noonmark.rows.types import SqlType
from noonmark.sql.functions.key import KEY_FORM
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.encoding import encode
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import Call, Scalar, column


@dataclass(frozen=True)
class KeyedInput:
    """One input of a keyed operator, and the key over its rows."""

    relation: r.Relation
    key: tuple[Scalar, ...]


@once
def keyed_inputs(node: r.Relation) -> tuple[KeyedInput, ...]:
    """The inputs of an operator with their keys."""
    sides = operator_of(node).sides(node)
    assert sides, f"{type(node).__name__} has no key"
    exact = [_exact([key[at].type for _, key in sides]) for at in range(len(sides[0][1]))]
    return tuple(KeyedInput(relation, tuple(map(_formed, key, exact))) for relation, key in sides)


def _formed(key: Scalar, exact: bool) -> Scalar:
    """The part of a key in a form that is the same for values that are equal in SQL."""
    return key if exact else Call(KEY_FORM, (key,))


def reads_of(node: r.Relation) -> list[r.Relation]:
    """What a plan reads, each once: collections, with the filters and projections on them."""
    found: set[r.Relation] = set()

    def visit(each: r.Relation) -> None:
        if r.is_read(each):
            found.add(each)
        else:
            for below in r.relations_below(each):
                visit(below)

    visit(node)
    return sorted(found, key=encode)


def is_keyed(node: r.Relation) -> bool:
    """Whether the operator works by keys."""
    return bool(operator_of(node).sides(node))


def whole_row(relation: r.Relation) -> tuple[Scalar, ...]:
    """The key of a relation in which rows are told apart."""
    return tuple(column(at, each) for at, each in enumerate(relation.schema))


def _exact(kinds: Sequence[SqlType]) -> bool:
    return len({arrow_type(kind) for kind in kinds}) == 1 and is_exact(kinds[0])


def over_scans(node: r.Relation) -> r.Relation:
    """The operator with its inputs replaced by collections named by their numbers."""
    return operator_of(node).over_scans(node)


def with_scans(node: r.Relation, places: dict[r.Relation, r.Scan]) -> r.Relation:
    """The plan with collections in the place of some of its relations."""

    def act(child: Node) -> Node:
        if isinstance(child, r.Relation) and child in places:
            return places[child]
        return rebuild(child, act)

    return rebuild(node, act)


def keyed_types(parts: Sequence[KeyedInput]) -> Iterator[SqlType]:
    """The types of the columns that a task gets: the key, then each input."""
    yield from (scalar.type for scalar in parts[0].key)
    for part in parts:
        yield from (each.type for each in part.relation.schema)
