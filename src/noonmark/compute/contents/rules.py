"""Every relation's rule, and the table of them.

Law: see the package. Rows have no times here (all are 0), and none is there less than once.

What a row cannot have a value for is in the errors: where there is one, the relation has no answer.

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noonmark.compute.contents import group, join, order
from noonmark.compute.kernel.keyed import has_kernel
from noonmark.compute.kernel.number import NO_KERNEL, NoKernel
from noonmark.compute.kernel.scalar import kept, projected
from noonmark.compute.kernel.updates import Errors, Rows, concat
from noonmark.compute.kernel.windows import window
from noonmark.rows.arrow import to_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk

Inputs = Mapping[str, Rows]


def has_rules(relation: r.Relation) -> bool:
    """Whether there is a rule for every part of a relation; it may still be `NoKernel` for some."""
    relations = (node for node in walk(relation) if isinstance(node, r.Relation))
    return all(type(node) in RULES and RULES[type(node)].can(node) for node in relations)


def contents(relation: r.Relation, inputs: Inputs, errors: Errors) -> Rows:
    """The rows of a relation that `has_rules`; none that count where there are errors.

    Raises:
        NoKernel: the kernels have no answer; another engine does.
    """
    try:
        return _Asked(inputs, errors).rows(relation)
    except NO_KERNEL as error:
        raise NoKernel from error


@dataclass
class _Asked:
    """One evaluation: what is shared by name is computed once."""

    inputs: Inputs
    errors: Errors
    named: dict[str, Rows] = field(default_factory=dict)

    def rows(self, relation: r.Relation) -> Rows:
        return RULES[type(relation)].act(self, relation)


def _scan(asked: _Asked, node: r.Scan) -> Rows:
    return asked.inputs[node.collection]


def _constant(_: _Asked, node: r.Constant) -> Rows:
    columns = tuple(
        to_array([row[at] for row in node.rows], column.type)
        for at, column in enumerate(node.schema)
    )
    count = len(node.rows)
    return Rows(columns, np.zeros(count, np.int64), np.ones(count, np.int64))


def _get(asked: _Asked, node: r.Get) -> Rows:
    return asked.named[node.name]


def _let(asked: _Asked, node: r.Let) -> Rows:
    asked.named[node.name] = asked.rows(node.value)
    return asked.rows(node.body)


def _filter(asked: _Asked, node: r.Filter) -> Rows:
    rows = asked.rows(node.input)
    return rows.take(kept(node.predicate, rows, asked.errors))


def _project(asked: _Asked, node: r.Project) -> Rows:
    arrays, rows = projected(node.scalars, asked.rows(node.input), asked.errors)
    return rows.with_columns(arrays)


def _union(asked: _Asked, node: r.Union) -> Rows:
    return concat([asked.rows(each) for each in node.inputs], node.schema)


def _join(asked: _Asked, node: r.Join) -> Rows:
    return join.join(node, asked.rows(node.left), asked.rows(node.right), asked.errors)


def _aggregate(asked: _Asked, node: r.Aggregate) -> Rows:
    return group.aggregate(node, asked.rows(node.input), asked.errors)


def _distinct(asked: _Asked, node: r.Distinct) -> Rows:
    return group.distinct(asked.rows(node.input))


def _intersect(asked: _Asked, node: r.Intersect) -> Rows:
    return group.intersect(node, asked.rows(node.left), asked.rows(node.right))


def _except(asked: _Asked, node: r.Except) -> Rows:
    return group.without(node, asked.rows(node.left), asked.rows(node.right))


def _top(asked: _Asked, node: r.TopK) -> Rows:
    return order.top(node, asked.rows(node.input))


def _window(asked: _Asked, node: r.Window) -> Rows:
    return window(node, asked.rows(node.input))


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """How the rows of a relation are had, and of which relations of that class."""

    act: Callable[[_Asked, Any], Rows]
    can: Callable[[Any], bool] = _always


RULES: dict[type[r.Relation], Rule] = {
    r.Scan: Rule(_scan),
    r.Constant: Rule(_constant),
    r.Get: Rule(_get),
    r.Let: Rule(_let),
    r.Filter: Rule(_filter),
    r.Project: Rule(_project),
    r.Union: Rule(_union),
    r.Join: Rule(_join, join.can_join),
    r.Aggregate: Rule(_aggregate, group.can_aggregate),
    r.Distinct: Rule(_distinct, group.can_be_same),
    r.Intersect: Rule(_intersect, group.can_be_same),
    r.Except: Rule(_except, group.can_be_same),
    r.TopK: Rule(_top, order.can_top),
    r.Window: Rule(_window, has_kernel),
}
