"""Random scalar expressions of every type over one row, from a seed.

The row is that of `COLUMNS`, in the table `TABLE`. An expression may fail: then both engines must,
alike. All that could fail is asked of columns: PostgreSQL computes what is constant before it looks
at a CASE around it, and whether that fails is no question of meaning.

``{stored}`` is a numeric of a column. A computed one may have another number of digits after the
point (its type says how many), which its text shows and the rest of a division multiplies.
"""

from __future__ import annotations

import random
from collections.abc import Callable

TABLE = "scalars"
_TYPES = {
    "int": "integer", "big": "bigint", "num": "numeric(12,3)", "float": "double precision",
    "text": "text", "date": "date", "stamp": "timestamp", "span": "interval", "bool": "boolean",
}  # fmt: skip
KINDS = tuple(_TYPES)
_VALUES = {
    "int": ("7", "-3", "0", "1", "-1", "2", "13", "100", "2147483647", "null"),
    "big": ("12345678901", "0", "9", "-5000000000", "9223372036854775807"),
    "num": ("-45.125", "3.500", "0", "0.05", "1.10", "-2.5", "2.5", "1234567.891", "null"),
    "float": ("2.5", "-0.1", "0", "1e10", "-1.5", "0.1", "null"),
    "text": ("Noon mark", "a", "B", "12", " x ", "%", "Ünï", "2020-01-31", "", "null"),
    "date": ("2024-02-29", "2020-01-31", "1970-01-01", "0001-01-01", "null"),
    "stamp": ("1999-12-31 23:59:59.5", "2020-02-29 12:34:56.789", "1970-01-01", "null"),
    "span": ("1 month 3 days 04:05:06", "1 day", "-90 minutes", "1 year 2 mons"),
    "bool": ("true", "false", "null"),
}
#: Column, type, value as it is written.
COLUMNS = tuple(
    (f"{kind}_{at}", _TYPES[kind], value if value == "null" else f"'{value}'")
    for kind, values in _VALUES.items()
    for at, value in enumerate(values)
)
#: For each kind, forms in which ``{int}`` and the like stand for expressions of that kind.
_FORMS = {
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})",
        "({int} % {int})", "(- {int})", "abs({int})", "length({text})", "char_length({text})",
        "octet_length({text})", "position({text} in {text})", "ascii({text})", "({int} & {int})",
        "({int} | {int})", "({int} # {int})", "(~ {int})", "({date} - {date})", "({num})::int",
        "({float})::int", "({text})::int", "strpos({text}, {text})", "({bool})::int",
        "greatest({int}, {int})", "least({int}, {int}, {int})", "nullif({int}, {int})",
        "coalesce({int}, {int})", "mod({int}, {int})", "gcd({int}, {int})",
    ),
    "big": (
        "({big} + {int})", "({big} - {big})", "({big} / {int})", "({int})::bigint", "abs({big})",
        "({big} % {big})", "({num})::bigint", "({float})::bigint", "greatest({big}, {int})",
    ),
    "num": (
        "({num} + {num})", "({num} - {int})", "({num} * {num})", "({num} / {num})",
        "round({num}, {small})", "trunc({num}, 1)", "round({num})", "floor({num})", "ceil({num})",
        "abs({num})", "sign({num})", "({int})::numeric", "({stored} % {stored})", "(- {num})",
        "({num})::numeric(10,2)", "extract(year from {date})", "extract(month from {stamp})",
        "extract(epoch from {stamp})", "extract(dow from {date})", "extract(hour from {stamp})",
        "extract(second from {stamp})", "extract(epoch from {span})", "coalesce({num}, {num})",
        "extract(week from {date})", "extract(quarter from {date})", "greatest({num}, {int})",
    ),
    "float": (
        "({float} + {float})", "({float} * {float})", "({float} / {float})", "({int})::float8",
        "({num})::float8", "abs({float})", "floor({float})", "round({float})", "(- {float})",
        "sqrt(abs({float}))", "power({small}::float8, 2)", "coalesce({float}, {float})",
        "date_part('day', {stamp})",
    ),
    "text": (
        "({text} || {text})", "upper({text})", "lower({text})", "initcap({text})",
        "substring({text} from {small} for {small})", "substr({text}, {int})",
        "left({text}, {small})", "right({text}, {small})", "trim({text})", "ltrim({text})",
        "rtrim({text}, 'k ')", "btrim({text}, 'aN')", "replace({text}, {text}, {text})",
        "reverse({text})", "repeat({text}, {small})", "lpad({text}, {small}, 'xy')",
        "rpad({text}, 5)", "split_part({text}, ' ', 1)", "translate({text}, 'ao', 'x')",
        "({int})::text", "({stored})::text", "({date})::text", "({stamp})::text", "({span})::text",
        "({bool})::text", "concat({text}, {int}, {bool})", "concat_ws('-', {text}, {text})",
        "md5({text})", "coalesce({text}, {text})", "nullif({text}, {text})", "({float})::text",
        "regexp_replace({text}, '[a-n]+', '_', 'g')", "to_char({date}, 'YYYY-MM-DD')",
        "overlay({text} placing {text} from 2)", "({text})::varchar(3)",
        "greatest({text}, {text})", "encode(sha256(convert_to({text}, 'UTF8')), 'hex')",
    ),
    "date": (
        "({date} + {small})", "({date} - {small})", "({stamp})::date", "({text})::date",
        "coalesce({date}, {date})", "make_date(2020, {int}, {int})",
        "greatest({date}, {date})",
    ),
    "stamp": (
        "({stamp} + {span})", "({stamp} - {span})", "({date})::timestamp", "({date} + {span})",
        "date_trunc('month', {stamp})", "date_trunc('hour', {stamp})",
        "date_trunc('week', {stamp})", "coalesce({stamp}, {stamp})",
    ),
    "span": (
        "({span} + {span})", "({span} - {span})", "({span} * {small})", "({stamp} - {stamp})",
        "(- {span})", "age({stamp}, {stamp})", "justify_hours({span})",
    ),
    "bool": (
        "({int} = {int})", "({num} < {num})", "({text} >= {text})", "({date} <> {date})",
        "({float} <= {float})", "({stamp} > {stamp})", "({span} < {span})", "({bool} and {bool})",
        "({bool} or {bool})", "(not {bool})", "({int} is null)", "({text} is not null)",
        "({int} is distinct from {int})", "({text} like {text})", "({text} ilike '%O%')",
        "({text} ~ '^[A-Z]')", "({int} in ({int}, {int}))", "({num} between {num} and {num})",
        "({int} = any(array[{int}, {int}]))", "({bool} is true)", "({bool} is not false)",
        "starts_with({text}, {text})", "(({int}, {int}) < ({int}, {int}))", "({big} > {int})",
    ),
}  # fmt: skip


class Scalars:
    """One stream of expressions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self) -> tuple[str, str]:
        """An expression and its kind."""
        kind = self._random.choice(KINDS)
        return self.of(kind, 3), kind

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        pick = self._random.choice
        if kind == "small":
            return pick(("0", "1", "2", "3", "5", "12"))
        if kind == "stored":
            kind, depth = "num", 0
        if depth <= 0 or self._random.uniform(0, 1) < 0.25:
            return f"{kind}_{self._random.randrange(len(_VALUES[kind]))}"
        if self._random.uniform(0, 1) < 0.1:
            when, then, other = (self.of(each, depth - 1) for each in ("bool", kind, kind))
            return f"(case when {when} then {then} else {other} end)"
        return self._filled(pick(_FORMS[kind]), lambda each: self.of(each, depth - 1))

    @staticmethod
    def _filled(form: str, make: Callable[[str], str]) -> str:
        filled, rest = "", form
        while "{" in rest:
            before, _, rest = rest.partition("{")
            kind, _, rest = rest.partition("}")
            filled += before + make(kind)
        return filled + rest
