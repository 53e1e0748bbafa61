"""The functions and operators of geometry, as PostgreSQL has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.coded.geometry import Box, Circle, Line, Lseg, Pair, Path, Point, Polygon
from noonmark.sql.functions.errors import NotHeldHere, TooManyItems
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.geometry import areas as a
from noonmark.sql.functions.geometry import floats as f
from noonmark.sql.functions.geometry import shapes as s
from noonmark.sql.functions.geometry.entries import entry

_B, _D, _I = t.Boolean, t.Double, t.Integer
_CORNERS_MAX = 1_000_000
Act = Callable[..., Any]


def _shift(sign: Callable[[float, float], float]) -> Callable[[Pair, Pair], Pair]:
    return lambda p, q: (sign(p[0], q[0]), sign(p[1], q[1]))


def _turn(p: Pair, q: Pair) -> Pair:
    (a_, b_), (c, d) = p, q
    return (
        f.sub(f.mul(a_, c), f.mul(b_, d)),
        f.add(f.mul(a_, d), f.mul(b_, c)),
    )


def _turn_back(p: Pair, q: Pair) -> Pair:
    (a_, b_), (c, d) = p, q
    whole = f.add(f.mul(c, c), f.mul(d, d))
    return (
        f.div(f.add(f.mul(a_, c), f.mul(b_, d)), whole),
        f.div(f.sub(f.mul(b_, c), f.mul(a_, d)), whole),
    )


_MOVES: dict[str, Callable[[Pair, Pair], Pair]] = {
    "+": _shift(f.add), "-": _shift(f.sub), "*": _turn, "/": _turn_back,
}  # fmt: skip


def _corners(one: Pair, other: Pair) -> tuple[float, ...]:
    """A box by two opposite corners; of equal coordinates (0 and -0), the second is high."""
    return Box.floats(Box.of_corners(other, one))


def _moved(sign: str) -> Iterable[Function]:
    """What is moved, or turned, by a point."""
    move = _MOVES[sign]

    def box(value: tuple[float, ...], by: Pair) -> tuple[float, ...]:
        high, low = move((value[0], value[1]), by), move((value[2], value[3]), by)
        return (*high, *low) if sign in "+-" else _corners(high, low)

    def circle(value: tuple[float, ...], by: Pair) -> tuple[float, ...]:
        centre, radius = move((value[0], value[1]), by), value[2]
        if sign in "*/":
            radius = (f.mul if sign == "*" else f.div)(radius, f.hypot(*by))
        return (*centre, radius)

    def path(value: tuple[tuple[Pair, ...], bool], by: Pair) -> Any:
        return [move(each, by) for each in value[0]], value[1]

    return (
        entry(sign, (Point, Point), Point, move),
        entry(sign, (Box, Point), Box, box),
        entry(sign, (Circle, Point), Circle, circle),
        entry(sign, (Path, Point), Path, path),
    )


def _joined(p: Any, q: Any) -> Any:
    return None if p[1] or q[1] else ((*p[0], *q[0]), False)


# -- where one is beside another: by the ends of boxes (high x, high y, low x, low y)

_Ends = tuple[float, float, float, float]
#: Sign; the end of the first, of the second, and how they compare: as numbers of `_Ends`.
_BESIDE: dict[str, tuple[int, int, str]] = {
    "<<": (0, 2, "lt"), "&<": (0, 0, "le"), ">>": (2, 0, "gt"), "&>": (2, 2, "ge"),
    "<<|": (1, 3, "lt"), "&<|": (1, 1, "le"), "|>>": (3, 1, "gt"), "|&>": (3, 3, "ge"),
}  # fmt: skip
_NEAR = {"lt": f.lt, "le": f.le, "gt": f.gt, "ge": f.ge}
_EXACT: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip


def _around(circle: tuple[float, ...]) -> tuple[float, ...]:
    x, y, radius = circle
    return f.add(x, radius), f.add(y, radius), f.sub(x, radius), f.sub(y, radius)


def _beside(sign: str) -> Iterable[Function]:
    first, second, how = _BESIDE[sign]
    near, exact = _NEAR[how], _EXACT[how]
    yield entry(sign, (Box, Box), _B, lambda p, q: near(p[first], q[second]))
    yield entry(
        sign,
        (Polygon, Polygon),
        _B,
        lambda p, q: exact(a.bounds(p)[first], a.bounds(q)[second]),
    )
    yield entry(
        sign, (Circle, Circle), _B, lambda p, q: near(_around(p)[first], _around(q)[second])
    )


def _points_beside() -> Iterable[Function]:
    for sign, axis, near in (
        ("<<", 0, f.lt), (">>", 0, f.gt), ("<<|", 1, f.lt), ("|>>", 1, f.gt), ("<^", 1, f.lt),
        (">^", 1, f.gt),
    ):  # fmt: skip
        yield entry(
            sign,
            (Point, Point),
            _B,
            lambda p, q, axis=axis, near=near: near(p[axis], q[axis]),
        )
    yield entry("<^", (Box, Box), _B, lambda p, q: f.le(p[1], q[3]))
    yield entry(">^", (Box, Box), _B, lambda p, q: f.ge(p[3], q[1]))


# -- what is inside of what


def _circle_holds(outer: tuple[float, ...], inner: tuple[float, ...]) -> bool:
    return f.le(s.distance(outer[:2], inner[:2]), f.sub(outer[2], inner[2]))  # type: ignore[arg-type]


def _in_circle(point: Pair, circle: tuple[float, ...]) -> bool:
    return s.distance((circle[0], circle[1]), point) <= circle[2]


_HOLDS: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Box, Box, a.box_contains),
    (Box, Point, lambda box, point: a.in_box(point, box)),
    (Circle, Circle, _circle_holds),
    (Circle, Point, lambda circle, point: _in_circle(point, circle)),
    (Path, Point, lambda way, point: a.on_way(point, way[0], closed=way[1])),
    (Polygon, Point, lambda points, point: a.inside(point, points)),
    (Polygon, Polygon, a.polygon_contains),
)
_LIES_ON: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Point, Line, s.on_line),
    (Point, Lseg, s.on_segment),
    (Lseg, Line, lambda segment, line: all(s.on_line(end, line) for end in segment)),
    (Lseg, Box, lambda segment, box: all(a.in_box(end, box) for end in segment)),
)


def _contained() -> Iterable[Function]:
    for outer, inner, act in _HOLDS:
        yield entry("@>", (outer, inner), _B, act)
        yield entry("<@", (inner, outer), _B, lambda x, y, act=act: act(y, x))
    for inner, outer, act in _LIES_ON:
        yield entry("<@", (inner, outer), _B, act)


# -- what meets, stands upright, lies flat


def _circles_overlap(p: Any, q: Any) -> bool:
    return f.le(s.distance(p[:2], q[:2]), f.add(p[2], q[2]))


_MEETS: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Box, Box, a.box_overlaps),
    (Line, Box, a.line_meets_box),
    (Line, Line, lambda p, q: s.meeting(p, q) is not None),
    (Lseg, Box, lambda segment, box: a.box_meets(box, segment)),
    (Lseg, Line, lambda segment, line: s.crossing_line(segment, line) is not None),
    (Lseg, Lseg, lambda p, q: s.crossing(p, q) is not None),
    (Path, Path, lambda p, q: a.ways_meet(p[0], q[0], p[1], q[1])),
)
_WAYS: tuple[tuple[str, str, tuple[type[t.SqlType], ...], Act], ...] = (
    ("?-", "ishorizontal", (Point, Point), lambda p, q: f.eq(p[1], q[1])),
    ("?-", "ishorizontal", (Line,), lambda line: f.is_zero(line[0])),
    ("?-", "ishorizontal", (Lseg,), lambda p: f.eq(p[0][1], p[1][1])),
    ("?|", "isvertical", (Point, Point), lambda p, q: f.eq(p[0], q[0])),
    ("?|", "isvertical", (Line,), lambda line: f.is_zero(line[1])),
    ("?|", "isvertical", (Lseg,), lambda p: f.eq(p[0][0], p[1][0])),
    ("?-|", "isperp", (Line, Line), s.perpendicular),
    ("?-|", "isperp", (Lseg, Lseg), lambda p, q: f.eq(s.slope(*p), s.inverse_slope(*q))),
    ("?||", "isparallel", (Line, Line), lambda p, q: s.meeting(p, q) is None),
    ("?||", "isparallel", (Lseg, Lseg), lambda p, q: f.eq(s.slope(*p), s.slope(*q))),
)


def _meeting() -> Iterable[Function]:
    for one, other, act in _MEETS:
        yield entry("?#", (one, other), _B, act)
    yield entry("&&", (Box, Box), _B, a.box_overlaps)
    yield entry("&&", (Circle, Circle), _B, _circles_overlap)
    yield entry("&&", (Polygon, Polygon), _B, a.polygons_overlap)
    for sign, name, kinds, act in _WAYS:
        yield entry(sign, kinds, _B, act)
        yield entry(name, kinds, _B, act)


def _common(p: _Ends, q: _Ends) -> Any:
    """What two boxes have in common."""
    if not a.box_overlaps(p, q):
        return None
    return f.least(p[0], q[0]), f.least(p[1], q[1]), f.greatest(p[2], q[2]), f.greatest(p[3], q[3])


# -- how far apart, and what is nearest


def _beyond(way: float, radius: float) -> float:
    """A distance from the edge of a circle; inside of it, 0."""
    rest = f.sub(way, radius)
    return 0.0 if rest < 0 else rest


def _between_circles(p: Any, q: Any) -> float:
    return _beyond(s.distance(p[:2], q[:2]), f.add(p[2], q[2]))


_FAR: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Point, Point, s.distance),
    (Point, Line, lambda p, line: s.nearest_on_line(line, p)[1]),
    (Point, Lseg, lambda p, segment: s.nearest(segment, p)[1]),
    (Point, Path, lambda p, way: a.to_way(p, way[0], closed=way[1])),
    (Point, Box, lambda p, box: a.nearest_of_box(box, p)[1]),
    (Point, Circle, lambda p, c: _beyond(s.distance(p, (c[0], c[1])), c[2])),
    (Point, Polygon, a.to_polygon),
    (Line, Line, s.line_distance),
    (Line, Lseg, lambda line, segment: s.nearest_to_line(segment, line)[1]),
    (Lseg, Lseg, lambda p, q: s.nearest_to_segment(p, q)[1]),
    (Lseg, Box, lambda segment, box: a.nearest_of_box_to(box, segment)[1]),
    (Path, Path, lambda p, q: a.ways_distance(p[0], q[0], p[1], q[1])),
    (Box, Box, lambda p, q: s.distance(a.box_middle(p), a.box_middle(q))),
    (Circle, Circle, _between_circles),
    (Circle, Polygon, lambda c, p: _beyond(a.to_polygon((c[0], c[1]), p), c[2])),
    (Polygon, Polygon, a.polygon_distance),
)


def _distances() -> Iterable[Function]:
    for one, other, act in _FAR:
        yield entry("<->", (one, other), _D, act, gives_null=one is Path)
        if one is not other:
            yield entry("<->", (other, one), _D, lambda x, y, act=act: act(y, x))


def _found(near: s.Near) -> Pair | None:
    return None if math.isnan(near[1]) else near[0]


def _nearest_of_segments(p: s.Segment, q: s.Segment) -> Pair | None:
    return None if s.slope(*p) == s.slope(*q) else _found(s.nearest_to_segment(q, p))


def _nearest_to_line(line: s.Line, segment: s.Segment) -> Pair | None:
    if s.slope(*segment) == s.line_slope(line):
        return None
    return _found(s.nearest_to_line(segment, line))


_CLOSEST: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Point, Line, lambda p, line: _found(s.nearest_on_line(line, p))),
    (Point, Lseg, lambda p, segment: _found(s.nearest(segment, p))),
    (Point, Box, lambda p, box: _found(a.nearest_of_box(box, p))),
    (Lseg, Lseg, _nearest_of_segments),
    (Lseg, Box, lambda segment, box: _found(a.nearest_of_box_to(box, segment))),
    (Line, Lseg, _nearest_to_line),
)


# -- equality and order: of boxes and circles by area, of segments by length, of paths by points


def _area(circle: tuple[float, ...]) -> float:
    return f.mul(f.mul(circle[2], circle[2]), math.pi)


def _same_circle(p: tuple[float, ...], q: tuple[float, ...]) -> bool:
    radii = (math.isnan(p[2]) and math.isnan(q[2])) or f.eq(p[2], q[2])
    return radii and s.equal((p[0], p[1]), (q[0], q[1]))


def _same_segment(p: s.Segment, q: s.Segment) -> bool:
    return s.equal(p[0], q[0]) and s.equal(p[1], q[1])


def _same_box(p: _Ends, q: _Ends) -> bool:
    return s.equal(p[:2], q[:2]) and s.equal(p[2:], q[2:])


def _compared() -> Iterable[Function]:
    orders: dict[str, Callable[[float, float], bool]] = {
        "<": f.lt, "<=": f.le, ">": f.gt, ">=": f.ge,
    }  # fmt: skip
    measures: tuple[tuple[type[t.SqlType], Act], ...] = (
        (Box, a.box_area), (Circle, _area), (Lseg, lambda p: s.distance(*p)),
    )  # fmt: skip
    for kind, measure in measures:
        for sign, near in orders.items():
            yield entry(
                sign,
                (kind, kind),
                _B,
                lambda p, q, near=near, measure=measure: near(measure(p), measure(q)),
            )
    exact = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    for sign, how in exact.items():
        yield entry(
            sign,
            (Path, Path),
            _B,
            lambda p, q, test=_EXACT[how]: test(len(p[0]), len(q[0])),
        )
    yield entry("=", (Path, Path), _B, lambda p, q: len(p[0]) == len(q[0]))
    yield entry("=", (Box, Box), _B, lambda p, q: f.eq(a.box_area(p), a.box_area(q)))
    yield entry("=", (Circle, Circle), _B, lambda p, q: f.eq(_area(p), _area(q)))
    yield entry("<>", (Circle, Circle), _B, lambda p, q: f.ne(_area(p), _area(q)))
    yield entry("=", (Lseg, Lseg), _B, _same_segment)
    yield entry("<>", (Lseg, Lseg), _B, lambda p, q: not _same_segment(p, q))
    yield entry("=", (Line, Line), _B, s.same_line)
    yield entry("<>", (Point, Point), _B, lambda p, q: not s.equal(p, q))
    yield entry("~=", (Point, Point), _B, s.equal)
    yield entry("~=", (Box, Box), _B, _same_box)
    yield entry("~=", (Circle, Circle), _B, _same_circle)
    yield entry("~=", (Polygon, Polygon), _B, a.same_points)


# -- parts and kin


def _centre(circle: tuple[float, ...]) -> Pair:
    return circle[0], circle[1]


def _polygon_centre(points: Any) -> Pair:
    return _centre(a.circle_around(points))


def _opened(way: Any) -> Any:
    return way[0], False


def _closed(way: Any) -> Any:
    return way[0], True


def polygon_of_path(way: Any) -> Any:
    """A closed path as what it is around."""
    if not way[1]:
        raise InvalidArgument("open path cannot be converted to polygon")
    return way[0]


def polygon_of_circle(count: int, circle: tuple[float, ...]) -> list[Pair]:
    """Points on a circle."""
    x, y, radius = circle
    if f.is_zero(radius):
        raise NotHeldHere("cannot convert circle with radius zero to polygon")
    if count < 2:
        raise InvalidArgument("must request at least 2 points")
    if count > _CORNERS_MAX:
        raise TooManyItems("too many points requested")
    step = f.div(2.0 * math.pi, float(count))
    angles = [f.mul(step, float(at)) for at in range(count)]
    return [
        (f.sub(x, f.mul(radius, math.cos(w))), f.add(y, f.mul(radius, math.sin(w)))) for w in angles
    ]


def box_of_circle(circle: tuple[float, ...]) -> tuple[float, ...]:
    """The box that a circle is around."""
    x, y, radius = circle
    delta = f.div(radius, math.sqrt(2.0))
    return f.add(x, delta), f.add(y, delta), f.sub(x, delta), f.sub(y, delta)


def circle_of_box(box: Any) -> tuple[float, ...]:
    """The circle around a box."""
    middle = a.box_middle(box)
    return (*middle, s.distance(middle, (box[0], box[1])))


def polygon_of_box(box: Any) -> list[Pair]:
    """The corners of a box."""
    hx, hy, lx, ly = box
    return [(lx, ly), (lx, hy), (hx, hy), (hx, ly)]


def _bound(p: _Ends, q: _Ends) -> tuple[float, ...]:
    high = (f.greatest(p[0], q[0]), f.greatest(p[1], q[1]))
    return (*high, f.least(p[2], q[2]), f.least(p[3], q[3]))


def _line_through(p: Pair, q: Pair) -> tuple[float, ...]:
    if s.equal(p, q):
        raise InvalidArgument("invalid line specification: must be two distinct points")
    return s.line_at(p, s.slope(p, q))


def _circle(centre: Pair, radius: float) -> tuple[float, ...]:
    return (*centre, radius)


#: What casts and functions of the name of a type make of another one.
MADE: tuple[tuple[type[t.SqlType], type[t.SqlType], Act], ...] = (
    (Box, Point, a.box_middle),
    (Box, Lseg, lambda box: ((box[0], box[1]), (box[2], box[3]))),
    (Box, Polygon, polygon_of_box),
    (Box, Circle, circle_of_box),
    (Circle, Point, _centre),
    (Circle, Box, box_of_circle),
    (Circle, Polygon, lambda circle: polygon_of_circle(12, circle)),
    (Lseg, Point, s.middle),
    (Path, Polygon, polygon_of_path),
    (Point, Box, lambda p: (*p, *p)),
    (Polygon, Point, _polygon_centre),
    (Polygon, Path, lambda points: (points, True)),
    (Polygon, Box, a.bounds),
    (Polygon, Circle, a.circle_around),
)


def _measures() -> Iterable[Function]:
    yield entry("area", (Box,), _D, a.box_area)
    yield entry("area", (Circle,), _D, _area)
    yield entry("area", (Path,), _D, lambda way: a.way_area(way[0]) if way[1] else None,
                gives_null=True)  # fmt: skip
    yield entry("height", (Box,), _D, lambda box: f.sub(box[1], box[3]))
    yield entry("width", (Box,), _D, lambda box: f.sub(box[0], box[2]))
    yield entry("diameter", (Circle,), _D, lambda circle: f.mul(circle[2], 2.0))
    yield entry("radius", (Circle,), _D, lambda circle: circle[2])
    yield entry("slope", (Point, Point), _D, s.slope)
    for name in ("length", "@-@"):
        yield entry(name, (Lseg,), _D, lambda p: s.distance(*p))
        yield entry(name, (Path,), _D, lambda way: a.way_length(way[0], closed=way[1]))
    for name in ("npoints", "#"):
        yield entry(name, (Path,), _I, lambda way: len(way[0]))
        yield entry(name, (Polygon,), _I, len)


def _parts() -> Iterable[Function]:
    for name, kinds in (("center", (Box, Circle)), ("@@", (Box, Circle, Lseg, Polygon))):
        acts: dict[type[t.SqlType], Act] = {
            Box: a.box_middle,
            Circle: _centre,
            Lseg: s.middle,
            Polygon: _polygon_centre,
        }
        yield from (entry(name, (kind,), Point, acts[kind]) for kind in kinds)
    yield entry("diagonal", (Box,), Lseg, lambda box: ((box[0], box[1]), (box[2], box[3])))
    yield entry("isclosed", (Path,), _B, lambda way: way[1])
    yield entry("isopen", (Path,), _B, lambda way: not way[1])
    yield entry("pclose", (Path,), Path, _closed)
    yield entry("popen", (Path,), Path, _opened)
    yield entry("bound_box", (Box, Box), Box, _bound)
    yield entry("box", (Point, Point), Box, _corners)
    yield entry("circle", (Point, _D), Circle, _circle)
    yield entry("line", (Point, Point), Line, _line_through)
    yield entry("lseg", (Point, Point), Lseg, lambda p, q: (p, q))
    yield entry("point", (_D, _D), Point, lambda x, y: (x, y))
    yield entry("polygon", (_I, Circle), Polygon, polygon_of_circle,
                size=lambda count, _: 40.0 * count)  # fmt: skip
    yield from (entry(made.spelling, (kind,), made, act) for kind, made, act in MADE)


TABLE = (
    *(each for sign in _MOVES for each in _moved(sign)),
    entry("+", (Path, Path), Path, _joined, gives_null=True),
    *(each for sign in _BESIDE for each in _beside(sign)),
    *_points_beside(),
    *_contained(),
    *_meeting(),
    entry("#", (Box, Box), Box, _common, gives_null=True),
    entry("#", (Line, Line), Point, s.meeting, gives_null=True),
    entry("#", (Lseg, Lseg), Point, s.crossing, gives_null=True),
    *_distances(),
    *(entry("##", (one, other), Point, act, gives_null=True) for one, other, act in _CLOSEST),
    *_compared(),
    *_measures(),
    *_parts(),
)
