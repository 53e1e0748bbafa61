"""What rules are made of: walking a plan, moving scalars between rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from noonmark.rows.schema import Schema
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.relation import Filter, Project, Relation
from noonmark.sql.ir.scalar import ColumnRef, Scalar, column, conjunction, map_columns


def bottom_up(rule: Callable[[Relation], Relation]) -> Callable[[Relation], Relation]:
    """The rule at every relation of a plan, inputs first."""

    def act(relation: Relation) -> Relation:
        # What is shared is rewritten once, and is shared again: plans would grow without end.
        done: dict[int, tuple[Node, Node]] = {}

        def visit(node: Any) -> Node:
            if isinstance(node, Scalar):
                return node
            if id(node) not in done:
                changed = rebuild(node, visit)
                changed = rule(changed) if isinstance(changed, Relation) else changed
                done[id(node)] = (node, changed)
            return done[id(node)][1]

        result = visit(relation)
        assert isinstance(result, Relation)
        return result

    act.__doc__ = rule.__doc__
    return act


def columns(schema: Schema) -> list[Scalar]:
    """A reference to every column."""
    return [column(at, each) for at, each in enumerate(schema)]


def select(relation: Relation, indices: Sequence[int], names: Sequence[str]) -> Relation:
    """The columns at these positions, under these names."""
    schema = relation.schema
    same = list(indices) == list(range(len(schema))) and tuple(names) == schema.names
    if same:
        return relation
    kept = tuple(column(at, schema.columns[at]) for at in indices)
    return Project(relation, kept, tuple(names))


def renamed(relation: Relation, schema: Schema) -> Relation:
    """The first columns of a relation under the names of a schema."""
    return select(relation, range(len(schema)), schema.names)


def substitute(scalar: Scalar, values: Sequence[Scalar]) -> Scalar:
    """The scalar with every column replaced by the value at its position."""
    return map_columns(scalar, lambda ref: values[ref.index])


def onto(scalar: Scalar, schema: Schema, place: Callable[[int], int]) -> Scalar:
    """The scalar over another row, in which its columns stand at other places."""

    def move(ref: ColumnRef) -> Scalar:
        at = place(ref.index)
        return column(at, schema.columns[at])

    return map_columns(scalar, move)


def filtered(relation: Relation, parts: Sequence[Scalar]) -> Relation:
    """The rows that pass all parts."""
    return Filter(relation, conjunction(list(parts))) if parts else relation
