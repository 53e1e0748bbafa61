"""Boxes, polygons, paths and circles: what is inside, what overlaps, how far apart they are.

A box is (high x, high y, low x, low y). Each function is PostgreSQL's, step by step.
"""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.errors import TooComplex
from noonmark.rows.coded.geometry import Pair
from noonmark.sql.functions.geometry import floats as f
from noonmark.sql.functions.geometry import shapes as s
from noonmark.sql.functions.geometry.shapes import Line, Near, Segment

Box = tuple[float, float, float, float]
Points = Sequence[Pair]
#: Segments inside of each other's pieces; more is not followed.
DEPTH_MAX = 200
_ON = 99


def box_overlaps(a: Box, b: Box) -> bool:
    """Whether boxes have a point in common."""
    return f.le(a[2], b[0]) and f.le(b[2], a[0]) and f.le(a[3], b[1]) and f.le(b[3], a[1])


def box_contains(a: Box, b: Box) -> bool:
    """Whether the first box has the second in it."""
    return f.ge(a[0], b[0]) and f.le(a[2], b[2]) and f.ge(a[1], b[1]) and f.le(a[3], b[3])


def in_box(point: Pair, box: Box) -> bool:
    """Whether a point is in a box."""
    return box[0] >= point[0] >= box[2] and box[1] >= point[1] >= box[3]


def box_area(box: Box) -> float:
    """The area of a box."""
    return f.mul(f.sub(box[0], box[2]), f.sub(box[1], box[3]))


def box_middle(box: Box) -> Pair:
    """The middle of a box."""
    return f.div(f.add(box[0], box[2]), 2.0), f.div(f.add(box[1], box[3]), 2.0)


def bounds(points: Points) -> Box:
    """The least box around points."""
    hx, hy = lx, ly = points[0]
    for x, y in points[1:]:
        lx, hx = (x if f.less(x, lx) else lx), (x if f.less(hx, x) else hx)
        ly, hy = (y if f.less(y, ly) else ly), (y if f.less(hy, y) else hy)
    return hx, hy, lx, ly


def _sides(box: Box) -> list[Segment]:
    hx, hy, lx, ly = box
    high, low, left, right = (hx, hy), (lx, ly), (lx, hy), (hx, ly)
    return [(low, left), (high, left), (low, right), (high, right)]


def box_meets(box: Box, segment: Segment) -> bool:
    """Whether a segment meets a box, or lies in it."""
    (ax, ay), (bx, by) = segment
    around = (f.greatest(ax, bx), f.greatest(ay, by), f.least(ax, bx), f.least(ay, by))
    if not box_overlaps(around, box):
        return False
    if any(in_box(end, box) for end in segment):
        return True
    return any(s.crossing(side, segment) is not None for side in _sides(box))


def line_meets_box(line: Line, box: Box) -> bool:
    """Whether a line meets a side of a box."""
    hx, hy, lx, ly = box
    corners = [(lx, ly), (lx, hy), (hx, hy), (hx, ly)]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return any(s.crossing_line(side, line) is not None for side in sides)


def nearest_of_box(box: Box, point: Pair) -> Near:
    """The point of a box that is nearest to a point."""
    if in_box(point, box):
        return point, 0.0
    return s.nearest_of(s.nearest(side, point) for side in _sides(box))


def nearest_of_box_to(box: Box, segment: Segment) -> Near:
    """The point of a box that is nearest to a segment."""
    if box_meets(box, segment):
        return s.nearest(segment, box_middle(box))[0], 0.0
    return s.nearest_of(s.nearest_to_segment(side, segment) for side in _sides(box))


# -- polygons


def _crossed(x: float, y: float, before_x: float, before_y: float) -> int:
    """How a side crosses the right half of the x axis; `_ON` where it goes through (0, 0)."""
    if f.is_zero(y):
        if f.is_zero(x):
            return _ON
        if f.gt(x, 0.0):
            if f.is_zero(before_y):
                return 0 if f.gt(before_x, 0.0) else _ON
            return 1 if f.lt(before_y, 0.0) else -1
        if f.is_zero(before_y):
            return 0 if f.lt(before_x, 0.0) else _ON
        return 0
    sign = 1 if f.gt(y, 0.0) else -1
    if f.is_zero(before_y):
        return 0 if f.lt(before_x, 0.0) else sign
    if (sign < 0 and f.lt(before_y, 0.0)) or (sign > 0 and f.gt(before_y, 0.0)):
        return 0
    if f.ge(x, 0.0) and f.gt(before_x, 0.0):
        return 2 * sign
    if f.lt(x, 0.0) and f.le(before_x, 0.0):
        return 0
    z = f.sub(f.mul(f.sub(x, before_x), y), f.mul(f.sub(y, before_y), x))
    if f.is_zero(z):
        return _ON
    if (sign < 0 and f.lt(z, 0.0)) or (sign > 0 and f.gt(z, 0.0)):
        return 0
    return 2 * sign


def inside(point: Pair, points: Points) -> bool:
    """Whether a point is in a polygon, or on its edge."""
    moved = [(f.sub(x, point[0]), f.sub(y, point[1])) for x, y in points[:1]]
    first = before = moved[0]
    total = 0
    for x, y in points[1:]:
        here = f.sub(x, point[0]), f.sub(y, point[1])
        step = _crossed(*here, *before)
        if step == _ON:
            return True
        total, before = total + step, here
    step = _crossed(*first, *before)
    return step == _ON or total + step != 0


def same_points(a: Points, b: Points) -> bool:
    """Whether ways have the same points, from wherever they begin, in either direction."""
    count = len(a)
    if count != len(b):
        return False
    for at in range(count):
        if s.equal(b[at], a[0]):
            for step in (1, -1):
                if all(s.equal(b[(at + step * n) % count], a[n]) for n in range(1, count)):
                    return True
    return False


def polygons_overlap(a: Points, b: Points) -> bool:
    """Whether polygons have a point in common."""
    if not box_overlaps(bounds(a), bounds(b)):
        return False
    theirs = s.segments_of(b, closed=True)
    for side in s.segments_of(a, closed=True):
        if any(s.crossing(side, other) is not None for other in theirs):
            return True
    return inside(a[0], b) or inside(b[0], a)


def polygon_contains(a: Points, b: Points) -> bool:
    """Whether the first has the second in it."""
    if not box_contains(bounds(a), bounds(b)):
        return False
    return all(_lies_in(*side, a, 0, 0) for side in s.segments_of(b, closed=True))


def _lies_in(a: Pair, b: Pair, points: Points, start: int, depth: int) -> bool:
    """Whether a segment lies in a polygon, as far as its sides from `start` on say so."""
    if depth > DEPTH_MAX:
        raise TooComplex("a polygon crosses another one too often")
    piece, was_cut, result = (a, b), False, True
    corner = points[start - 1]
    for at in range(start, len(points)):
        side = (corner, points[at])
        if s.on_segment(a, side):
            if s.on_segment(b, side):
                return True
            result = _touches(a, b, side, points, at + 1, depth)
        elif s.on_segment(b, side):
            result = _touches(b, a, side, points, at + 1, depth)
        else:
            met = s.crossing(piece, side)
            if met is not None:
                was_cut = True
                result = _lies_in(a, met, points, at + 1, depth + 1)
                result = result and _lies_in(b, met, points, at + 1, depth + 1)
        if not result:
            return False
        corner = points[at]
    return True if was_cut else inside(s.middle(piece), points)


def _touches(  # noqa: PLR0917 - a step of `_lies_in`
    a: Pair, b: Pair, side: Segment, points: Points, start: int, depth: int
) -> bool:
    """The same of a segment that touches a side with its point a."""
    piece = (a, b)
    ends = (1,) if s.equal(a, side[0]) else (0,) if s.equal(a, side[1]) else (0, 1)
    for end in ends:
        if s.on_segment(side[end], piece):
            return _lies_in(b, side[end], points, start, depth + 1)
    return True


def polygon_distance(a: Points, b: Points) -> float:
    """How far polygons are apart."""
    return 0.0 if polygons_overlap(a, b) else ways_distance(a, b, True, True) or 0.0


def to_polygon(point: Pair, points: Points) -> float:
    """How far a point is from a polygon."""
    if inside(point, points):
        return 0.0
    sides = [(points[0], points[-1]), *s.segments_of(points, closed=False)]
    return s.nearest_of(s.nearest(side, point) for side in sides)[1]


def circle_around(points: Points) -> tuple[float, float, float]:
    """The circle of a polygon: its mean, and how far its points are from there on average."""
    x = y = radius = 0.0
    for each in points:
        x, y = f.add(x, each[0]), f.add(y, each[1])
    centre = f.div(x, float(len(points))), f.div(y, float(len(points)))
    for each in points:
        radius = f.add(radius, s.distance(each, centre))
    return (*centre, f.div(radius, float(len(points))))


# -- paths


def way_length(points: Points, *, closed: bool) -> float:
    """The length of a path."""
    total = 0.0
    for side in s.segments_of(points, closed=closed):
        total = f.add(total, s.distance(*side))
    return total


def way_area(points: Points) -> float:
    """The area of what a closed path is around."""
    area = 0.0
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        area = f.sub(f.add(area, f.mul(ax, by)), f.mul(ay, bx))
    return f.div(abs(area), 2.0)


def on_way(point: Pair, points: Points, *, closed: bool) -> bool:
    """Whether a point is on an open path, or in a closed one."""
    if closed:
        return inside(point, points)
    return any(s.on_segment(point, side) for side in s.segments_of(points, closed=False))


def to_way(point: Pair, points: Points, *, closed: bool) -> float:
    """How far a point is from a path; of one without a segment, 0."""
    sides = s.segments_of(points, closed=closed)
    return s.nearest_of(s.nearest(side, point) for side in sides)[1] if sides else 0.0


def ways_distance(a: Points, b: Points, a_closed: bool, b_closed: bool) -> float | None:
    """How far two paths are apart; None where one has no segment."""
    own, theirs = s.segments_of(a, closed=a_closed), s.segments_of(b, closed=b_closed)
    if not own or not theirs:
        return None
    return s.nearest_of(s.nearest_to_segment(x, y) for x in own for y in theirs)[1]


def ways_meet(a: Points, b: Points, a_closed: bool, b_closed: bool) -> bool:
    """Whether two paths meet."""
    if not box_overlaps(bounds(a), bounds(b)):
        return False
    theirs = s.segments_of(b, closed=b_closed)
    return any(
        s.crossing(side, other) is not None
        for side in s.segments_of(a, closed=a_closed)
        for other in theirs
    )
