"""Aggregates of frames: what neighbouring rows have in common is folded once.

A `Fold` is an aggregate as a monoid: a state of one value, two states as one, and what a state
shows. States of neighbours are put together in a tree, so the aggregate of any range of n rows is
made of at most 2 log n states; of ranges that all begin with the first row, of the one before.

Law: ``finish(the sum of lift(v) over the values of a frame)`` is the aggregate's own meaning over
these values (`noonmark.sql.functions.aggregate`).

Where it runs: everywhere; pure.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.order import total_key
from noonmark.sql.functions.aggregate import MOMENTS, rounded
from noonmark.sql.functions.number import numeric
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.time.calendar import interval_add, interval_scale

State = Any
#: One past its last, and the first position of some neighbours.
Range = tuple[int, int]
_FLOATS = (t.Real, t.Double)
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)


@dataclass(frozen=True)
class Fold:
    """An aggregate as a monoid.

    Attributes:
        lift: the state of one value (of count, of nothing).
        plus: two states as one.
        finish: what is shown of how many values there are, and of their state.
        empty: what is shown of no values.
    """

    lift: Callable[[Any], State]
    plus: Callable[[State, State], State]
    finish: Callable[[int, State], Any]
    empty: Any = None


def _shown(_: int, state: State) -> Any:
    return state


def _add_all(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(operator.add, a, b))


def _of_float(value: float) -> tuple[Fraction, Fraction, int, int, int]:
    """The number, its square, and whether it is NaN or an infinity instead."""
    if math.isfinite(value):
        exact = Fraction(value)
        return exact, exact * exact, 0, 0, 0
    zero = Fraction(0)
    return zero, zero, int(math.isnan(value)), int(value == math.inf), int(value == -math.inf)


def _total(state: tuple[Fraction, Fraction, int, int, int]) -> Fraction | float:
    total, _, nan, up, down = state
    if nan or (up and down):
        return math.nan
    return math.inf if up else -math.inf if down else total


def _sum_of_floats(count: int, state: Any, *, mean: bool = False) -> float:
    total = _total(state)
    return total if isinstance(total, float) else rounded(total / count if mean else total)


def _moment_of_floats(name: str) -> Callable[[int, Any], Any]:
    moment = MOMENTS[name]

    def finish(count: int, state: Any) -> Any:
        if isinstance(_total(state), float):
            return math.nan if count > int(moment.sample) else None
        return moment.of_fractions(count, state[0], state[1])

    return finish


def _squares(value: Any) -> tuple[Decimal, Decimal]:
    number = Decimal(value)
    return WIDE.add(Decimal(0), number), WIDE.multiply(number, number)


def _plus_wide(a: tuple[Decimal, Decimal], b: tuple[Decimal, Decimal]) -> tuple[Decimal, ...]:
    return WIDE.add(a[0], b[0]), WIDE.add(a[1], b[1])


def _extreme(kind: t.SqlType, name: str) -> Fold:
    """The least or the greatest, of equals the first."""
    key = total_key(kind)

    def least(a: Any, b: Any) -> Any:
        return b if b[0] < a[0] else a

    def greatest(a: Any, b: Any) -> Any:
        return b if b[0] > a[0] else a

    def finish(_: int, state: Any) -> Any:
        value = state[1]
        return value + 0.0 if isinstance(value, float) else value

    return Fold(lambda value: (key(value), value), greatest if name == "max" else least, finish)


def _mean_of_intervals(count: int, total: v.Interval) -> v.Interval:
    return interval_scale(total, lambda field: field / count)


def _mean_of_numbers(count: int, total: Decimal) -> Decimal:
    return numeric.divide(total, Decimal(count))


def _sums(kind: t.SqlType, name: str) -> Fold | None:
    mean = name == "avg"
    if isinstance(kind, _FLOATS):
        return Fold(_of_float, _add_all, lambda n, s: _sum_of_floats(n, s, mean=mean))
    if isinstance(kind, t.Interval):
        finish = _mean_of_intervals if mean else _shown
        return Fold(lambda x: interval_add(v.Interval(), x), interval_add, finish)
    if not mean and isinstance(kind, _WHOLE):
        return Fold(lambda x: x, operator.add, _shown)
    if isinstance(kind, (*_WHOLE, t.Numeric)):
        shown = _mean_of_numbers if mean else _shown
        return Fold(lambda x: WIDE.add(Decimal(0), Decimal(x)), WIDE.add, shown)
    return None


_BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}


def fold_of(name: str, types: Sequence[t.SqlType]) -> Fold | None:
    """An aggregate as a monoid; None if what it shows is as long as its frame."""
    if name == "count":
        return Fold(lambda _: None, lambda a, _: a, lambda n, _: n, empty=0)
    if len(types) != 1:
        return None
    if name in ("sum", "avg"):
        return _sums(types[0], name)
    if name in MOMENTS:
        if isinstance(types[0], _FLOATS):
            return Fold(_of_float, _add_all, _moment_of_floats(name))
        return Fold(_squares, _plus_wide, lambda n, s: MOMENTS[name].of_numbers(n, *s))
    if name in ("min", "max"):
        return _extreme(types[0], name)
    if name == "any_value":
        return Fold(lambda x: x, lambda first, _: first, _shown)
    if name in ("bool_and", "every"):
        return Fold(lambda x: x, lambda a, b: a and b, _shown)
    if name == "bool_or":
        return Fold(lambda x: x, lambda a, b: a or b, _shown)
    if name in _BITS:
        return Fold(lambda x: x, _BITS[name], _shown)
    return None


#: A state with how many values it is of; None of no values.
Counted = tuple[int, State] | None


class Ranges:
    """The states of any range of rows."""

    def __init__(self, fold: Fold, states: Sequence[Counted]) -> None:
        self._fold = fold
        self._states = states
        self._tree: list[Counted] | None = None
        self._last: tuple[int, Counted] = 0, None

    def plus(self, a: Counted, b: Counted) -> Counted:
        """Two as one."""
        if a is None or b is None:
            return b if a is None else a
        return a[0] + b[0], self._fold.plus(a[1], b[1])

    def over(self, ranges: Sequence[Range]) -> Any:
        """What is shown of the rows of some ranges."""
        made: Counted = None
        for low, high in ranges:
            made = self.plus(made, self._of(low, high))
        return self._fold.empty if made is None else self._fold.finish(*made)

    def _of(self, low: int, high: int) -> Counted:
        end, known = self._last
        if low == 0 and high >= end:  # as many rows more as the frame has grown by
            for state in self._states[end:high]:
                known = self.plus(known, state)
            self._last = high, known
            return known
        return self._in_tree(low, high)

    def _in_tree(self, low: int, high: int) -> Counted:
        size, first, last = len(self._states), None, None
        if self._tree is None:
            self._tree = self._built()
        tree = self._tree
        low, high = low + size, high + size
        while low < high:
            if low & 1:
                first = self.plus(first, tree[low])
                low += 1
            if high & 1:
                high -= 1
                last = self.plus(tree[high], last)
            low, high = low // 2, high // 2
        return self.plus(first, last)

    def _built(self) -> list[Counted]:
        """The tree: the states of the rows behind those of pairs, of pairs of pairs, ..."""
        size = len(self._states)
        tree: list[Counted] = [*([None] * size), *self._states]
        for at in range(size - 1, 0, -1):
            tree[at] = self.plus(tree[2 * at], tree[2 * at + 1])
        return tree
