"""The judge of a view: its query as it is written, by the plain meaning of plans.

Law: ``verdict(plan, ...)`` is empty iff what is stored is what the plan means, over the collections
at one time. The plan is the query's own text with its names resolved, and nothing was done to it:
no rule of `noonmark.sql.rules`, no rewrite of maintenance, no kernel, no Spark expression.
Correlated subqueries are asked anew for every row, joins try every pair.

Law (errors): the rules may make a query succeed that fails as it is written, where the value that
fails is not needed; never the other way round. So a view with an answer where the text has none is
not judged (None), and a view without one where the text has one is wrong. Which of several errors a
query has is not defined.

What the judge shares with the accused: the parser, the resolution of names and types, the meaning
of scalars where maintenance has no kernel for them, and the readers of stored parts.

Where it runs: `work_of` on the driver; the rest anywhere; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noonmark.errors import EvaluationError
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.relation import Multiset, evaluate

#: So many rows and pairs may be looked at by the plain meaning: it takes half a second.
WORK_MAX = 300_000.0
#: A recursion is taken to have so many rounds.
_ROUNDS = 20


@dataclass(frozen=True)
class Difference:
    """A row, or an error, that is there `extra` times more than the definition says."""

    row: tuple[Any, ...]
    error: str | None
    extra: int


def verdict(
    plan: r.Relation,
    collections: Mapping[str, Multiset],
    stored: Multiset,
    errors: Mapping[str, int],
    *,
    inputs_fail: bool = False,
) -> list[Difference] | None:
    """Where what is stored differs from the plan; None if it cannot be judged by the plan.

    Args:
        plan: the query as it is written, told the time.
        collections: what it reads.
        stored: the rows of the view.
        errors: the errors of the view.
        inputs_fail: whether something that it reads has no answer: then it has none either.
    """
    try:
        wanted = None if inputs_fail else evaluate(plan, collections)
    except EvaluationError:
        wanted = None
    if wanted is None:
        return [] if errors or (inputs_fail and not stored) else None
    return differences(stored, wanted, errors, len(plan.schema))


def differences(
    stored: Multiset, wanted: Multiset, errors: Mapping[str, int], width: int
) -> list[Difference]:
    """What is there too often, and what too seldom; every error is one too many."""
    empty = (None,) * width
    made = [Difference(empty, text, count) for text, count in errors.items()]
    for row in {**stored, **wanted}:
        extra = stored.get(row, 0) - wanted.get(row, 0)
        if extra:
            made.append(Difference(row, None, extra))
    return made


def work_of(plan: r.Relation, sizes: Mapping[str, int]) -> float:
    """How much the plain meaning has to look at, about, for collections of these sizes."""
    return _size(plan, sizes, {})[1]


def _size(
    node: r.Relation, sizes: Mapping[str, int], names: Mapping[str, float]
) -> tuple[float, float]:
    """How many rows a relation may have, and how much is looked at for them."""
    match node:
        case r.Scan():
            return sizes[node.collection], sizes[node.collection]
        case r.Constant():
            return len(node.rows), len(node.rows)
        case r.Get():
            return names.get(node.name, 1.0), 0.0
        case r.Let():
            rows, work = _size(node.value, sizes, names)
            shown, more = _size(node.body, sizes, {**names, node.name: rows})
            return shown, work + more
        case r.Recursive():
            bound = {**names, **dict.fromkeys(node.names, 100.0)}
            values = [_size(each, sizes, bound) for each in node.values]
            shown, more = _size(node.body, sizes, bound)
            return shown, more + _ROUNDS * sum(work for _, work in values)
        case r.Join() | r.Apply():
            return _pairs(node, sizes, names)
    below = [_size(each, sizes, names) for each in r.relations_below(node)]
    rows = sum(each for each, _ in below)
    return rows, rows + sum(work for _, work in below)


def _pairs(
    node: r.Join | r.Apply, sizes: Mapping[str, int], names: Mapping[str, float]
) -> tuple[float, float]:
    left, first = _size(node.left, sizes, names)
    right, then = _size(node.right, sizes, names)
    often = left if isinstance(node, r.Apply) else 1.0
    early = node.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI)
    return left if early else left * max(right, 1.0), first + often * then + left * right
