"""When the rows of a query that follows the time come and go, though nothing is written.

Law: between two times of `times`, and while its inputs stay as they are, a plan has the same rows.
A row's turn is asked of the rows below each temporal filter, as if those below it let all pass:
that is more times than needed, and never one too few.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from noonmark.adapter.peek.gather import Multiset
from noonmark.adapter.peek.shape import Leaf, Shape, shape_of
from noonmark.compute.plan.definition import inlined
from noonmark.errors import EvaluationError, Unsupported
from noonmark.sql.evaluate import evaluate as scalar_value
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.temporal import FOREVER, Temporal, temporal
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.rules.rewrite import bottom_up
from noonmark.sql.rules.temporal import separated

Read = Callable[[Leaf], Multiset]


class Turns:
    """The temporal filters of a plan."""

    def __init__(self, relation: r.Relation) -> None:
        """Raises `Unsupported` where mz_now() stands in no temporal filter, or a turn may not end.

        Turns are asked for in a thread, which cannot be ended.
        """
        for node in walk_once(relation):
            if isinstance(node, s.Call) and node.steps == math.inf:
                raise Unsupported(
                    "SUBSCRIBE to a query with mz_now() and a pattern that is not constant, or has "
                    "back references, is not supported",
                    hint="Look for the pattern in the rows that SUBSCRIBE gives.",
                )
        self._filters = list(_filters(separated(inlined(relation, {}))))
        self._times: list[int] | None = None

    def changed(self) -> None:
        """The inputs are others now."""
        self._times = None

    def after(self, time: int, read: Read) -> int | None:
        """The first turn after a time, of the rows that the leaves have now."""
        if self._times is None:
            self._times = sorted(set(self._all(read)))
        at = bisect_right(self._times, time)
        return self._times[at] if at < len(self._times) else None

    def _all(self, read: Read) -> Iterator[int]:
        for what, shape in self._filters:
            rows = contents(shape.rest, {leaf.name: read(leaf) for leaf in shape.leaves})
            for row in rows:
                turn = _turn(what, row)
                if turn is not None and turn < FOREVER:
                    yield turn


def _turn(what: Temporal, row: tuple[Any, ...]) -> int | None:
    with suppress(EvaluationError):  # the query itself fails, if it comes to this row
        return what.turn(scalar_value(what.scalar, row))
    return None


def _filters(plan: r.Relation) -> Iterator[tuple[Temporal, Shape]]:
    for node in walk_once(plan):
        if isinstance(node, r.Filter) and (what := temporal(node)) is not None:
            yield what, shape_of(_timeless(node.input))


def _pass(node: r.Relation) -> r.Relation:
    """All rows, where a temporal filter stands."""
    return node.input if isinstance(node, r.Filter) and temporal(node) is not None else node


_timeless = bottom_up(_pass)
