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
from dataclasses import dataclass, replace

from noonmark.compute.plan.memo import once
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
    match node:
        case r.Aggregate():
            sides = [(node.input, node.keys)]
        case r.TopK() | r.Window():
            sides = [(node.input, node.partition)]
        case r.Distinct():
            sides = [(node.input, _whole_row(node.input))]
        case r.Intersect() | r.Except():
            sides = [(node.left, _whole_row(node.left)), (node.right, _whole_row(node.right))]
        case r.Join():
            sides = [
                (node.left, tuple(key.left for key in node.keys)),
                (node.right, tuple(key.right for key in node.keys)),
            ]
        case r.Recursive():
            sides = [(each, ()) for each in reads_of(node)]
        case _:
            raise AssertionError(f"{type(node).__name__} has no key")
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
    kinds = r.Aggregate, r.TopK, r.Window, r.Distinct, r.Intersect, r.Except, r.Join
    return isinstance(node, kinds) or (isinstance(node, r.Recursive) and bool(reads_of(node)))


def _whole_row(relation: r.Relation) -> tuple[Scalar, ...]:
    return tuple(column(at, each) for at, each in enumerate(relation.schema))


def _exact(kinds: Sequence[SqlType]) -> bool:
    return len({arrow_type(kind) for kind in kinds}) == 1 and is_exact(kinds[0])


def over_scans(node: r.Relation) -> r.Relation:
    """The operator with its inputs replaced by collections named by their numbers."""
    match node:
        case r.Join() | r.Intersect() | r.Except():
            left, right = r.Scan("0", node.left.schema), r.Scan("1", node.right.schema)
            return replace(node, left=left, right=right)
        case r.Recursive():
            reads = enumerate(reads_of(node))
            return _with_scans(node, {each: r.Scan(str(at), each.schema) for at, each in reads})
    return replace(node, input=r.Scan("0", node.input.schema))  # type: ignore[attr-defined,call-arg]


def _with_scans(node: r.Relation, places: dict[r.Relation, r.Scan]) -> r.Relation:
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
