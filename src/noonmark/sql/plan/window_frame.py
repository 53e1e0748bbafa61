"""The frame of a window: ROWS, GROUPS or RANGE, from where to where, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from noonmark.errors import InvalidReference, InvalidSyntax, WindowingError
from noonmark.rows import types as t
from noonmark.rows.order import sort_key as sort_key_of
from noonmark.rows.value import Interval
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.evaluate import constant
from noonmark.sql.functions.errors import InvalidFrameSize, NullRefused
from noonmark.sql.ir.asked import asked
from noonmark.sql.ir.call import Exclusion, Frame, SortKey, Unit
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.scalar import ColumnRef, OuterRef, Scalar
from noonmark.sql.plan.frame import only
from noonmark.sql.plan.row import Row, unsupported
from noonmark.sql.plan.scalar import call, comparable, plan

_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
_TIMES = (t.Date, t.Timestamp, t.TimestampTz, t.Time, t.Interval)
#: Where a bound can be, in the order in which a frame goes.
_PLACES = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")


def plan_frame(tree: exp.Window, keys: Sequence[SortKey], row: Row) -> Frame:
    """The frame that a window says, or else the rows up to the peers of the current one."""
    spec = tree.args.get("spec")
    if spec is None:
        return Frame()
    only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    unit = Unit(str(spec.args.get("kind") or "RANGE").upper())
    _check_bounds(spec)
    if unit is Unit.GROUPS and not keys:
        raise WindowingError("GROUPS mode requires an ORDER BY clause", position=position_of(spec))
    start = _bound(spec, "start", unit, row)
    end = 0 if spec.args.get("end") is None else _bound(spec, "end", unit, row)
    exclude = spec.args.get("exclude")
    words = "NO OTHERS" if exclude is None else str(getattr(exclude, "name", exclude)).upper()
    plain = Frame(unit, start, end, Exclusion(words))
    if unit is not Unit.RANGE:
        return plain
    edges = [_edge(spec, name, keys, row) for name in ("start", "end")]
    given = [edge for edge in edges if edge is not None]
    if not given:
        return plain
    by, *same = comparable("<=", [keys[0].scalar, *given], spec)
    first, last = (None if edge is None else same.pop(0) for edge in edges)
    return replace(plain, by=by, first=first, last=last)


def _place(spec: exp.WindowSpec, name: str) -> int:
    value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    here = value is None or (isinstance(value, str) and value.upper() == "CURRENT ROW")
    if side not in ("PRECEDING", "FOLLOWING") and not (here and not side):
        raise InvalidSyntax("syntax error in the frame of a window", position=position_of(spec))
    if here:
        return _PLACES.index("CURRENT ROW")
    return _PLACES.index(f"UNBOUNDED {side}" if isinstance(value, str) else side)


def _check_bounds(spec: exp.WindowSpec) -> None:
    """A frame starts and ends somewhere, and goes from there to here."""
    start, end = _place(spec, "start"), _place(spec, "end")
    message = None
    if _PLACES[start] == "UNBOUNDED FOLLOWING":
        message = "frame start cannot be UNBOUNDED FOLLOWING"
    elif _PLACES[end] == "UNBOUNDED PRECEDING":
        message = "frame end cannot be UNBOUNDED PRECEDING"
    elif start > end:
        first = "current row" if _PLACES[start] == "CURRENT ROW" else "following row"
        last = "current row" if _PLACES[end] == "CURRENT ROW" else "preceding rows"
        message = f"frame starting from {first} cannot have {last}"
        if spec.args.get("end") is None:
            message = "frame starting from following row cannot end with current row"
    if message is not None:
        raise WindowingError(message, position=position_of(spec))


def _bound(spec: exp.WindowSpec, name: str, unit: Unit, row: Row) -> int | None:
    """How many rows or groups a bound is away; None for all, and 0 for the value of a RANGE."""
    value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if isinstance(value, str):
        return 0 if value.upper() == "CURRENT ROW" else None
    if unit is Unit.RANGE:
        return 0
    assert isinstance(value, exp.Expr)
    which = "starting" if name == "start" else "ending"
    distance = coerce(_same_for_all(value, unit, row), t.BigInt(), position_of(value))
    count = constant(distance, "a frame of a window", position_of(value))
    if count is None:
        raise NullRefused(f"frame {which} offset must not be null")
    if int(count) < 0:
        raise InvalidFrameSize(f"frame {which} offset must not be negative")
    return -int(count) if side == "PRECEDING" else int(count)


def _same_for_all(tree: exp.Expr, unit: Unit, row: Row) -> Scalar:
    """A distance, which no row has for itself."""
    distance = plan(tree, row)
    if any(isinstance(node, ColumnRef | OuterRef) for node in walk(distance)):
        raise InvalidReference(
            f"argument of {unit.value} must not contain variables", position=position_of(tree)
        )
    if asked(distance):
        raise unsupported("a parameter as the bound of a frame", tree)
    return distance


def _edge(spec: exp.WindowSpec, name: str, keys: Sequence[SortKey], row: Row) -> Scalar | None:
    """What the sort key is at a distance from that of the current row; None without a distance."""
    tree, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if tree is None or isinstance(tree, str):
        return None
    if len(keys) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=position_of(spec),
        )
    key, distance = keys[0].scalar, _same_for_all(tree, Unit.RANGE, row)
    if isinstance(key.type, _TIMES):
        distance = coerce(distance, t.Interval(), position_of(tree))
        if isinstance(key.type, t.Time):
            key = coerce(key, t.Interval(), position_of(spec))  # a day has an end, a distance none
    elif not isinstance(key.type, _NUMBERS):
        raise unsupported(f"RANGE with a distance over {key.type}", spec)
    elif distance.type == UNKNOWN:
        distance = coerce(distance, key.type, position_of(tree))
    if isinstance(key.type, t.SmallInt | t.Integer):
        key = coerce(key, t.BigInt(), position_of(spec))  # a distance from its last value is one
    _check_size(distance, tree, "starting" if name == "start" else "ending")
    sign = "-" if (side == "PRECEDING") != keys[0].descending else "+"
    return call(sign, [key, distance], tree, operator=True)


def _check_size(distance: Scalar, tree: exp.Expr, which: str) -> None:
    """A distance is there, and goes the way that its word says."""
    value = constant(distance, "a frame of a window", position_of(tree))
    if value is None:
        raise NullRefused(f"frame {which} offset must not be null")
    zero = Interval() if isinstance(distance.type, t.Interval) else 0
    order = sort_key_of(distance.type)
    if order(value) < order(zero) or str(value) in ("nan", "NaN"):
        raise InvalidFrameSize(
            "invalid preceding or following size in window function", position=position_of(tree)
        )
