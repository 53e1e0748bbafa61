"""Points, lines and segments: where they meet, how far apart they are, what is nearest.

A line is (A, B, C), a segment a pair of points. Each function is PostgreSQL's, step by step, so
that results are equal to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from noonmark.rows.coded.geometry import Pair, sloped
from noonmark.sql.functions.geometry import floats as f

Line = tuple[float, float, float]
Segment = tuple[Pair, Pair]


def equal(a: Pair, b: Pair) -> bool:
    """Whether points are equal within a bit; with NaN, exactly."""
    if any(map(math.isnan, (*a, *b))):
        return f.same(a[0], b[0]) and f.same(a[1], b[1])
    return f.eq(a[0], b[0]) and f.eq(a[1], b[1])


def distance(a: Pair, b: Pair) -> float:
    """How far two points are apart."""
    return f.hypot(f.sub(a[0], b[0]), f.sub(a[1], b[1]))


def slope(a: Pair, b: Pair) -> float:
    """How steep the way between two points is; infinite straight up."""
    if f.eq(a[0], b[0]):
        return math.inf
    if f.eq(a[1], b[1]):
        return 0.0
    return f.div(f.sub(a[1], b[1]), f.sub(a[0], b[0]))


def inverse_slope(a: Pair, b: Pair) -> float:
    """The slope of what stands upright on the way between two points."""
    if f.eq(a[0], b[0]):
        return 0.0
    if f.eq(a[1], b[1]):
        return math.inf
    return f.div(f.sub(a[0], b[0]), f.sub(b[1], a[1]))


def line_at(at: Pair, steep: float) -> Line:
    """The line of a slope through a point."""
    if math.isinf(steep) or steep == 0:
        return sloped(at, steep)
    return steep, -1.0, f.sub(at[1], f.mul(steep, at[0])) + 0.0


def line_of(segment: Segment) -> Line:
    """The line that a segment lies on."""
    return line_at(segment[0], slope(*segment))


# -- lines


def line_slope(line: Line) -> float:
    """How steep a line is."""
    if f.is_zero(line[0]):
        return 0.0
    return math.inf if f.is_zero(line[1]) else f.div(line[0], -line[1])


def line_inverse_slope(line: Line) -> float:
    """How steep what stands upright on a line is."""
    if f.is_zero(line[0]):
        return math.inf
    return 0.0 if f.is_zero(line[1]) else f.div(line[1], line[0])


def meeting(one: Line, other: Line) -> Pair | None:
    """Where two lines meet; None if they are parallel."""
    a, b, c = one
    d, e, g = other
    if f.is_zero(b):
        if f.is_zero(e):
            return None
        (a, b, c), (d, e, g) = other, one
    if f.eq(d, f.mul(a, f.div(e, b))):
        return None
    x = f.div(f.sub(f.mul(b, g), f.mul(e, c)), f.sub(f.mul(a, e), f.mul(d, b)))
    y = f.div(-f.add(f.mul(a, x), c), b)
    return x + 0.0, y + 0.0


def perpendicular(one: Line, other: Line) -> bool:
    """Whether lines stand upright on each other."""
    if f.is_zero(one[0]):
        return f.is_zero(other[1])
    if f.is_zero(other[0]):
        return f.is_zero(one[1])
    if f.is_zero(one[1]):
        return f.is_zero(other[0])
    if f.is_zero(other[1]):
        return f.is_zero(one[0])
    return f.eq(f.div(f.mul(one[0], other[0]), f.mul(one[1], other[1])), -1.0)


def same_line(one: Line, other: Line) -> bool:
    """Whether lines are the same: their numbers are proportional."""
    if any(map(math.isnan, (*one, *other))):
        return all(f.same(a, b) for a, b in zip(one, other, strict=True))
    pairs = list(zip(one, other, strict=True))
    ratio = next((f.div(a, b) for a, b in pairs if not f.is_zero(b)), 1.0)
    return all(f.eq(a, f.mul(ratio, b)) for a, b in pairs)


def line_distance(one: Line, other: Line) -> float:
    """How far parallel lines are apart; of others, 0."""
    if meeting(one, other) is not None:
        return 0.0
    pairs = zip(one[:2], other[:2], strict=True)
    ratio = next(
        (f.div(a, b) for a, b in pairs if not any(f.is_zero(x) or math.isnan(x) for x in (a, b))),
        1.0,
    )
    return f.div(abs(f.sub(one[2], f.mul(ratio, other[2]))), f.hypot(one[0], one[1]))


def on_line(point: Pair, line: Line) -> bool:
    """Whether a point is on a line."""
    return f.is_zero(f.add(f.add(f.mul(line[0], point[0]), f.mul(line[1], point[1])), line[2]))


# -- segments


def on_segment(point: Pair, segment: Segment) -> bool:
    """Whether a point is on a segment."""
    both = f.add(distance(point, segment[0]), distance(point, segment[1]))
    return f.eq(both, distance(*segment))


def crossing_line(segment: Segment, line: Line) -> Pair | None:
    """Where a segment meets a line."""
    found = meeting(line_of(segment), line)
    if found is None or not on_segment(found, segment):
        return None
    return next((end for end in segment if equal(end, found)), found)


def crossing(one: Segment, other: Segment) -> Pair | None:
    """Where two segments meet."""
    found = crossing_line(one, line_of(other))
    return found if found is not None and on_segment(found, other) else None


def middle(segment: Segment) -> Pair:
    """The middle of a segment."""
    (ax, ay), (bx, by) = segment
    return f.div(f.add(ax, bx), 2.0), f.div(f.add(ay, by), 2.0)


# -- what is nearest: the point, and how far it is

Near = tuple[Pair, float]


def nearest_on_line(line: Line, point: Pair) -> Near:
    """The point of a line that is nearest to a point."""
    found = meeting(line_at(point, line_inverse_slope(line)), line)
    return (point, math.nan) if found is None else (found, distance(found, point))


def nearest_to_line(segment: Segment, line: Line) -> Near:
    """The point of a segment that is nearest to a line."""
    met = crossing_line(segment, line)
    if met is not None:
        return met, 0.0
    first, second = (nearest_on_line(line, end)[1] for end in segment)
    return (segment[0], first) if first < second else (segment[1], second)


def nearest(segment: Segment, point: Pair) -> Near:
    """The point of a segment that is nearest to a point."""
    found, _ = nearest_to_line(segment, line_at(point, inverse_slope(*segment)))
    return found, distance(found, point)


def nearest_to_segment(on: Segment, to: Segment) -> Near:
    """The point of a segment that is nearest to another segment."""
    met = crossing(on, to)
    if met is not None:
        return met, 0.0
    best, far = nearest(on, to[0])
    other, way = nearest(on, to[1])
    if f.less(way, far):
        best, far = other, way
    for end in on:
        way = nearest(to, end)[1]
        if f.less(way, far):
            best, far = end, way
    return best, far


def nearest_of(found: Iterable[Near]) -> Near:
    """The nearest of several, of equal ones the first."""
    several = iter(found)
    best = next(several)
    for each in several:
        if f.less(each[1], best[1]):
            best = each
    return best


def segments_of(points: Sequence[Pair], *, closed: bool) -> list[Segment]:
    """The segments of a way; the one that closes it is the first."""
    first = [(points[-1], points[0])] if closed else []
    return [*first, *pairwise(points)]
