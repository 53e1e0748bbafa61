"""Aggregates of statistics: those of an ordered set, and those of pairs of numbers.

percentile_cont, percentile_disc and mode take the values in the order of WITHIN GROUP, behind their
direct argument. The others take pairs (y, x): sums are exact and rounded once, so that the result
does not depend on an order; PostgreSQL's may differ in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from noonmark.errors import OutOfRange
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.order import equal_form
from noonmark.sql.functions.aggregate import Aggregator, Rows, rounded
from noonmark.sql.functions.function import Any_, Result
from noonmark.sql.functions.time.calendar import interval_add, interval_scale

Types = tuple[t.SqlType, ...]

#: Aggregates that WITHIN GROUP belongs to.
ORDERED_SETS = frozenset(("percentile_cont", "percentile_disc", "mode"))
#: Window functions that are, with arguments and WITHIN GROUP, aggregates of an ordered set.
HYPOTHETICAL = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))


def check_fractions(given: tuple[float | tuple[float | None, ...] | None, ...]) -> None:
    """Refuse a direct argument that is no fraction; whoever plans asks, also where no rows are.

    Raises:
        OutOfRange: it is not between 0 and 1.
    """
    for fraction in (x for each in given for x in (each if isinstance(each, tuple) else (each,))):
        if fraction is not None and not 0 <= fraction <= 1:
            raise OutOfRange(f"percentile value {fraction:g} is not between 0 and 1")


def _fraction(rows: Rows) -> float:
    return float(rows[0][0][0])


def _at(rows: Rows, place: int) -> Any:
    """The value that so many values are before."""
    for arguments, count in rows:
        place -= count
        if place < 0:
            return arguments[-1]
    raise AssertionError("there are not so many values")


def _between(rows: Rows, between: Callable[[Any, Any, float], Any]) -> Any:
    if not rows:
        return None
    place = _fraction(rows) * (sum(count for _, count in rows) - 1)
    low, high = math.floor(place), math.ceil(place)
    first = _at(rows, low)
    return first if low == high else between(first, _at(rows, high), place - low)


def _percentile_cont(_: Types, rows: Rows) -> float | None:
    found: float | None = _between(rows, lambda low, high, part: low + part * (high - low))
    return None if found is None else float(found)


def _percentile_span(_: Types, rows: Rows) -> v.Interval | None:
    def between(low: v.Interval, high: v.Interval, part: float) -> v.Interval:
        back = v.Interval(-low.months, -low.days, -low.micros)
        way = interval_scale(interval_add(high, back), lambda field: field * part)
        return interval_add(low, way)

    found: v.Interval | None = _between(rows, between)
    return found


def _percentile_disc(_: Types, rows: Rows) -> Any:
    if not rows:
        return None
    count = sum(times for _, times in rows)
    return _at(rows, max(0, math.ceil(_fraction(rows) * count) - 1))


def _several(one: Callable[[Types, Rows], Any]) -> Callable[[Types, Rows], Any]:
    """The same of each of several fractions, which are one array; NULL of one that is NULL."""

    def act(types: Types, rows: Rows) -> Any:
        if not rows:
            return None
        return tuple(
            None
            if fraction is None
            else one(types, [((fraction, *values[1:]), count) for values, count in rows])
            for fraction in rows[0][0][0]
        )

    return act


def _mode(_: Types, rows: Rows) -> Any:
    """The value that is there most often, of several the first."""
    counts: dict[Any, int] = {}
    firsts: dict[Any, Any] = {}
    for arguments, count in rows:
        form = equal_form(arguments[-1])
        counts[form] = counts.get(form, 0) + count
        firsts.setdefault(form, arguments[-1])
    return firsts[max(counts, key=counts.__getitem__)] if counts else None


class _Pairs:
    """The sums of pairs (y, x), each as often as it is there.

    A sum of squares or products is NaN where a value in it is not finite, as in PostgreSQL; sums of
    the values themselves are what addition makes of them.
    """

    def __init__(self, rows: Rows) -> None:
        self.count = sum(count for _, count in rows)
        self.x, xs = _sum([(x, count) for (_, x), count in rows])
        self.y, ys = _sum([(y, count) for (y, _), count in rows])
        self.yy, self.xx = self._squares(ys), self._squares(xs)
        self.xy: Fraction | float = math.nan
        if xs is not None and ys is not None:
            both = sum((x * y * n for (x, n), (y, _) in zip(xs, ys, strict=True)), Fraction(0))
            self.xy = both - Fraction(self.x) * Fraction(self.y) / max(self.count, 1)

    def _squares(self, values: list[tuple[Fraction, int]] | None) -> Fraction | float:
        if values is None:
            return math.nan
        whole = sum((x * count for x, count in values), Fraction(0))
        return sum((x * x * n for x, n in values), Fraction(0)) - whole**2 / max(self.count, 1)


def _sum(
    values: list[tuple[float, int]],
) -> tuple[Fraction | float, list[tuple[Fraction, int]] | None]:
    """The sum, and the values as fractions if all are finite."""
    if all(math.isfinite(value) for value, _ in values):
        exact = [(Fraction(value), count) for value, count in values]
        return sum((value * count for value, count in exact), Fraction(0)), exact
    return sum(value for value, _ in values if not math.isfinite(value)), None


def _of_pairs(
    act: Callable[[_Pairs], Fraction | float | None], least: int = 1
) -> Callable[[Types, Rows], float | None]:
    """A statistic of at least so many pairs; NULL for fewer."""

    def meaning(_: Types, rows: Rows) -> float | None:
        pairs = _Pairs(rows)
        if pairs.count < least:
            return None
        found = act(pairs)
        return found if found is None or isinstance(found, float) else rounded(found)

    return meaning


def _exact(*sums: Fraction | float) -> tuple[Fraction, ...] | None:
    """The sums; None if one of them is no number."""
    found = tuple(each for each in sums if isinstance(each, Fraction))
    return found if len(found) == len(sums) else None


def _mean(total: Fraction | float, count: int) -> Fraction | float:
    return total / count


def _corr(pairs: _Pairs) -> float | None:
    if not pairs.xx or not pairs.yy:
        return None
    exact = _exact(pairs.xx, pairs.yy, pairs.xy)
    if exact is None:
        return math.nan
    xx, yy, xy = exact
    return rounded(xy) / math.sqrt(rounded(xx * yy))


def _r2(pairs: _Pairs) -> Fraction | float | None:
    if not pairs.xx:
        return None
    if not pairs.yy:
        return Fraction(1)
    exact = _exact(pairs.xx, pairs.yy, pairs.xy)
    return math.nan if exact is None else exact[2] ** 2 / (exact[0] * exact[1])


def _slope(pairs: _Pairs) -> Fraction | float | None:
    if not pairs.xx:
        return None
    exact = _exact(pairs.xx, pairs.xy)
    return math.nan if exact is None else exact[1] / exact[0]


def _intercept(pairs: _Pairs) -> Fraction | float | None:
    if not pairs.xx:
        return None
    exact = _exact(pairs.xx, pairs.xy, pairs.x, pairs.y)
    if exact is None:
        return math.nan
    xx, xy, x, y = exact
    return (y - x * xy / xx) / pairs.count


_PAIRS: dict[str, Callable[[Types, Rows], float | None]] = {
    "corr": _of_pairs(_corr),
    "covar_pop": _of_pairs(lambda p: _mean(p.xy, p.count)),
    "covar_samp": _of_pairs(lambda p: _mean(p.xy, p.count - 1), least=2),
    "regr_avgx": _of_pairs(lambda p: _mean(p.x, p.count)),
    "regr_avgy": _of_pairs(lambda p: _mean(p.y, p.count)),
    "regr_intercept": _of_pairs(_intercept),
    "regr_r2": _of_pairs(_r2),
    "regr_slope": _of_pairs(_slope),
    "regr_sxx": _of_pairs(lambda p: p.xx),
    "regr_sxy": _of_pairs(lambda p: p.xy),
    "regr_syy": _of_pairs(lambda p: p.yy),
}


def _regr_count(_: Types, rows: Rows) -> int:
    return sum(count for _, count in rows)


def _last(types: Types) -> t.SqlType:
    return types[-1]


def _row(
    name: str, parameters: tuple[Any, ...], result: Result, meaning: Any, *, ordered: bool = False
) -> Aggregator:
    nulls = name != "regr_count"
    return Aggregator(name, parameters, result, meaning, gives_null=nulls, ordered=ordered)


def _last_of_several(types: Types) -> t.SqlType:
    return t.Array(types[-1])


_TWO = (t.Double, t.Double)
TABLE = (
    _row("percentile_cont", _TWO, t.Double(), _percentile_cont, ordered=True),
    _row("percentile_cont", (t.Double, t.Interval), t.Interval(), _percentile_span, ordered=True),
    _row("percentile_disc", (t.Double, Any_.ELEMENT), _last, _percentile_disc, ordered=True),
    *(
        Aggregator(
            name,
            (t.Array, kind),
            result,
            _several(meaning),
            gives_null=True,
            ordered=True,
            element=t.Double,
        )
        for name, kind, result, meaning in (
            ("percentile_cont", t.Double, t.Array(t.Double()), _percentile_cont),
            ("percentile_cont", t.Interval, t.Array(t.Interval()), _percentile_span),
            ("percentile_disc", Any_.ELEMENT, _last_of_several, _percentile_disc),
        )
    ),
    _row("mode", (Any_.ELEMENT,), _last, _mode, ordered=True),
    _row("regr_count", _TWO, t.BigInt(), _regr_count),
    *(_row(name, _TWO, t.Double(), meaning) for name, meaning in _PAIRS.items()),
)
