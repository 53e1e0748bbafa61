"""How functions of geometry are entered: values are taken apart before a meaning, and put together.

A point is (x, y) then, a segment a pair of points, a line, a box and a circle their numbers, a
polygon its points, and a path its points and whether it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noonmark.rows import types as t
from noonmark.rows.coded.geometry import Box, Circle, Line, Lseg, Path, Point, Polygon
from noonmark.sql.functions.function import Function


def _segment(value: bytes) -> Any:
    ax, ay, bx, by = Lseg.floats(value)
    return (ax, ay), (bx, by)


_APART: dict[type[t.SqlType], Callable[[bytes], Any]] = {
    Point: Point.floats,
    Lseg: _segment,
    Box: Box.floats,
    Line: Line.floats,
    Circle: Circle.floats,
    Polygon: Polygon.points,
    Path: Path.way,
}
_TOGETHER: dict[type[t.SqlType], Callable[[Any], bytes]] = {
    Point: lambda made: Point.of_floats(*made),
    Lseg: lambda made: Lseg.of_floats(*made[0], *made[1]),
    Box: lambda made: Box.of_floats(*made),
    Line: lambda made: Line.of_floats(*made),
    Circle: lambda made: Circle.of_floats(*made),
    Polygon: Polygon.of_points,
    Path: lambda made: Path.of_way(made[0], closed=made[1]),
}


def _same(value: Any) -> Any:
    return value


def entry(
    name: str,
    kinds: tuple[type[t.SqlType], ...],
    result: type[t.SqlType],
    act: Callable[..., Any],
    *,
    gives_null: bool = False,
    size: Callable[..., float] | None = None,
) -> Function:
    """A function of values that are taken apart."""
    apart: list[Callable[[Any], Any]] = [_APART.get(kind, _same) for kind in kinds]
    together: Callable[[Any], Any] = _TOGETHER.get(result, _same)

    def meaning(*values: Any) -> Any:
        found = act(*(take(value) for take, value in zip(apart, values, strict=True)))
        return None if found is None else together(found)

    return Function(name, kinds, result(), meaning, gives_null=gives_null, fallible=True, size=size)
