"""Generated values of every SQL type, the hard ones often: what rows/ is tested with."""

from __future__ import annotations

import math
import uuid
from contextlib import suppress
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from noonmark.adapter.catalog.user_types import made_types
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.coded import CODED
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.coded.geometry import Box, Circle, Line, Path, Polygon, Shape
from noonmark.rows.coded.jsonpath import Jsonpath
from noonmark.rows.coded.network import Address, Cidr, Inet
from noonmark.rows.coded.ranges import Multirange, Range
from noonmark.rows.coded.snapshots import PgSnapshot, Snapshot
from noonmark.rows.coded.spans import Span
from noonmark.rows.jsonb import canonical
from noonmark.rows.label import Label, first_places
from noonmark.rows.numeral import Numeral, numeral
from support.sql.jsonpaths import path

_LABELS = ("sad", "ok", "", "NULL", 'o"k,{}')
#: A type that somebody made: its labels are not in the order of their texts.
ENUM = t.Enum("0" * 12, 7, "mood", tuple(map(Label, _LABELS, first_places(len(_LABELS)))))
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
_AWKWARD_TEXT = st.sampled_from(["", " ", "NULL", "null", "a b", '"', "\\", "{}", "(,)", "é\n"])
_FLOATS = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e15, 1e14, 1e-4, 1e-5, 1e6])


def _text(length: int | None = None) -> st.SearchStrategy[str]:
    both = st.one_of(TEXT, _AWKWARD_TEXT)
    return both if length is None else both.map(lambda text: text[:length])


def _integers(bits: int) -> st.SearchStrategy[int]:
    limit = 1 << (bits - 1)
    return st.one_of(st.integers(-limit, limit - 1), st.sampled_from([-limit, limit - 1, 0]))


def _exact(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Decimals built from their digits: no context may round them."""

    def build(number: int) -> Decimal:
        sign, text = int(number < 0), str(abs(number))
        return Decimal((sign, tuple(map(int, text)), -scale))

    limit = 10**digits - 1
    return st.integers(-limit, limit).map(build)


def _numerals() -> st.SearchStrategy[Numeral]:
    """Plain numerics: every size, trailing zeros, NaN and the infinities."""
    sizes = st.sampled_from([(1, 0), (6, 3), (38, 18), (40, 40), (3, 60), (90, 7)])
    zeros = st.integers(0, 5)
    finite = st.tuples(sizes.flatmap(lambda size: _exact(*size)), zeros).map(
        lambda drawn: numeral(
            Decimal(f"{drawn[0]:f}" + ("." if drawn[1] and "." not in f"{drawn[0]:f}" else "")
                    + "0" * drawn[1])
        )
    )  # fmt: skip
    odd = ["NaN", "Infinity", "-Infinity", "0", "0.00", "1e131071", "1e-16383", "10.0", "10.00"]
    # Made from their texts: Hypothesis shows strategies, and some of these are long.
    return st.one_of(finite, st.sampled_from(odd).map(lambda text: numeral(Decimal(text))))


_DAYS = st.one_of(
    st.integers(v.DAYS_MIN, v.DAYS_MAX),
    st.integers(-800_000, 3_000_000),
    st.sampled_from([v.DAYS_MIN, v.DAYS_MAX, v.INT32_MIN, v.INT32_MAX, 0, -1, -719_163]),
)
_MICROS = st.one_of(
    st.integers(v.MICROS_MIN, v.MICROS_MAX),
    st.integers(-(10**17), 3 * 10**17),
    st.integers(-(10**11), 3 * 10**11).map(lambda seconds: seconds * 1_000_000),
    st.sampled_from([v.MICROS_MIN, v.MICROS_MAX, v.INT64_MIN, v.INT64_MAX, 0, -1]),
)
# PostgreSQL prints the smallest micros but cannot read what it printed.
_INTERVALS = st.one_of(
    st.builds(
        v.Interval, _integers(32), _integers(32), _integers(64).filter(lambda n: n > v.INT64_MIN)
    ),
    st.builds(v.Interval, *[st.integers(-30, 30)] * 2, st.integers(-(10**12), 10**12)),
    st.sampled_from([v.Interval(), v.INTERVAL_INFINITY, v.INTERVAL_NEG_INFINITY]),
)
_JSON_NUMBERS = st.one_of(
    st.integers(), _exact(30, 12), st.floats(allow_nan=False, allow_infinity=False)
)
JSON_TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), _JSON_NUMBERS, TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_text(), inner, max_size=4)
    ),
    max_leaves=8,
)


def _json_documents() -> st.SearchStrategy[str]:
    # A list around the tree, because a bare string is taken for JSON text.
    return JSON_TREES.map(lambda tree: canonical([tree]))


def values(sql_type: t.SqlType) -> st.SearchStrategy[Any]:
    """Values of the type in canonical Python form, without NULL at the top."""
    match sql_type:
        case t.Boolean():
            return st.booleans()
        case t.SmallInt():
            return _integers(16)
        case t.Integer():
            return _integers(32)
        case t.BigInt():
            return _integers(64)
        case t.Real():
            return st.one_of(st.floats(width=32), _FLOATS.filter(_is_real))
        case t.Double():
            return st.one_of(st.floats(), _FLOATS)
        case t.Numeric(None):
            return _numerals()
        case t.Numeric(int(precision), int(scale)):
            return _exact(precision, scale).map(_no_negative_zero)
        case t.Text() | t.Char(None):
            return _text()
        case t.Varchar(length):
            return _text(length)
        case t.Char(int(length)):
            return _text(length).map(lambda text: text.ljust(length))
        case t.Bytea():
            return st.binary(max_size=20)
        case t.Date():
            return _DAYS.map(v.date_of)
        case t.Time():
            return st.one_of(st.integers(0, v.DAY_MICROS), st.just(v.DAY_MICROS)).map(v.time_of)
        case t.Timestamp():
            return _MICROS.map(v.timestamp_of)
        case t.TimestampTz():
            return _MICROS.map(v.timestamptz_of)
        case t.Interval():
            return _INTERVALS
        case t.Uuid():
            return st.integers(0, 2**128 - 1).map(lambda n: uuid.UUID(int=n))
        case t.Jsonb():
            return _json_documents()
        case t.Json():
            return st.sampled_from(('{"b" : 1,  "a":[1,2 ], "b":null}', " [ ]", '"\\u0041"', "1e5"))
        case t.Enum(labels=labels):
            return st.sampled_from(labels)
        case t.Coded():
            return coded(sql_type)
        case t.Array(element):
            return st.lists(st.none() | values(element), max_size=4)
        case t.Record(fields):
            return st.tuples(*(st.none() | values(field.type) for field in fields))
    raise AssertionError(sql_type)


def coded(sql_type: t.Coded) -> st.SearchStrategy[bytes]:
    """Values of a type that is stored as bytes: by the file that it stands in."""
    match sql_type:
        case Bit(length) | Varbit(length):
            least = (length or 0) if isinstance(sql_type, Bit) else 0
            return st.text("01", min_size=least, max_size=length or 20).map(str.encode)
        case Inet() | Cidr():
            sizes = st.sampled_from([4, 16]).flatmap(
                lambda size: st.tuples(
                    st.binary(min_size=size, max_size=size) | st.just(bytes(size - 1) + b"\7"),
                    st.integers(0, size * 8),
                )
            )
            made = sizes.map(lambda drawn: Address(*drawn))
            return made.map(lambda one: (one if sql_type.whole else one.net).value)
        case Jsonpath():
            return st.sampled_from(_paths())
        case Shape():
            return shapes(sql_type)
        case PgSnapshot():
            numbers = st.sets(st.integers(1, (1 << 32) - 1), min_size=2, max_size=6).map(sorted)
            return numbers.map(lambda some: Snapshot(some[0], some[-1], tuple(some[:-1])).value)
        case Multirange():
            one = sql_type.of_range()
            parts = st.lists(coded(one), max_size=4)
            return parts.map(lambda all_: sql_type.value(map(one.one, all_)))
        case Range():
            ends = st.lists(st.none() | values(sql_type.element).filter(_has_next), min_size=2,
                            max_size=2)  # fmt: skip
            edges = ends.map(
                lambda pair: sorted(pair, key=sql_type.sort) if None not in pair else pair
            )
            made = st.builds(
                lambda pair, low, high: sql_type.value(sql_type.span(*pair, low, high)),
                *(edges, st.booleans(), st.booleans()),
            )
            return made | st.just(sql_type.value(Span.none()))
    return st.binary(min_size=sql_type.size, max_size=sql_type.size)


def shapes(sql_type: Shape) -> st.SearchStrategy[bytes]:
    """Values of a type of geometry."""
    number = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1 / 3, 1e300, math.inf, -math.inf, math.nan])
    point = st.tuples(number, number)
    several = st.lists(point, min_size=1, max_size=4)
    match sql_type:
        case Box():
            return st.builds(Box.of_corners, point, point)
        case Line():
            return point.map(lambda pair: Line.of_floats(1.5, *pair))
        case Circle():
            return st.builds(lambda at, size: Circle.of_floats(*at, abs(size)), point, number)
        case Polygon():
            return several.map(Polygon.of_points)
        case Path():
            return st.builds(
                lambda way, shut: Path.of_way(way, closed=shut), several, st.booleans()
            )
    return st.tuples(*[number] * sql_type.count).map(lambda all_: sql_type.of_floats(*all_))


@cache
def _paths() -> list[bytes]:
    """Paths whose text PostgreSQL writes so that it can be read again."""
    found = []
    for seed in range(300):
        with suppress(NoonmarkError):
            made = Jsonpath().parse(path(Random(seed)))
            if not any(sign in made for sign in (b").", b")[", b")?")):
                found.append(made)
    return found


def _has_next(value: Any) -> bool:
    """Whether a range that ends with the value can be written without it."""
    return value not in (v.INT32_MAX, v.INT64_MAX, (1 << 63) - 1, v.FarDate(v.DAYS_MAX))


def _is_real(number: float) -> bool:
    return number in (0.0, 1e6) or not math.isfinite(number)


def _no_negative_zero(number: Decimal) -> Decimal:
    return number if number else abs(number)


SCALARS: tuple[t.SqlType, ...] = (
    t.Boolean(),
    t.SmallInt(),
    t.Integer(),
    t.BigInt(),
    t.Real(),
    t.Double(),
    t.Numeric(),
    t.Numeric(10, 2),
    t.Numeric(38, 0),
    t.Numeric(38, 38),
    t.Text(),
    t.Varchar(),
    t.Varchar(5),
    t.Char(5),
    t.Char(None),
    t.Bytea(),
    t.Date(),
    t.Time(),
    t.Timestamp(),
    t.TimestampTz(),
    t.Interval(),
    t.Uuid(),
    t.Jsonb(),
    t.Json(),
    ENUM,
    Bit(3),
    Varbit(),
    *(kind() for kind in CODED if kind not in (Bit, Varbit)),
)


def is_own(sql_type: t.SqlType) -> bool:
    """Whether every PostgreSQL has the type: nobody made it, or a part of it."""
    return not any(made_types(sql_type))


NESTED: tuple[t.SqlType, ...] = (
    *map(t.Array, SCALARS),
    t.Record((t.Field("a", t.Integer()), t.Field("B c", t.Text()))),
    t.Record(tuple(t.Field(f"f{at}", kind) for at, kind in enumerate(SCALARS))),
    t.Record(tuple(t.Field(f"f{at}", kind) for at, kind in enumerate(SCALARS) if is_own(kind))),
    t.Array(t.Record((t.Field("a", t.Array(t.Text())), t.Field("b", t.Date())))),
)
ALL_TYPES = SCALARS + NESTED

OWN_TYPES = tuple(filter(is_own, ALL_TYPES))


def same(left: Any, right: Any) -> bool:
    """Equality that tells 0.0 from -0.0, 1 from 1.0 and 1.0 from 1.00, and takes NaN for NaN."""
    return repr(left) == repr(right)
