"""Values of PostgreSQL's types, as text of SQL: what signatures are tried with.

Law (sense): a call is made of values that most functions take, two of each type; what says nothing
of a function is in `tests/cases/functions/families.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_PLAIN = {
    "boolean": ("true", "false"), "smallint": ("2", "5"), "integer": ("2", "-3"),
    "bigint": ("3", "40000000000"), "real": ("0.5", "1.25"), "double precision": ("0.25", "1.5"),
    "numeric": ("2.50", "1"), "text": ("abc", "A b,C"), "character": ("abc ", "b"),
    "character varying": ("abc", "x"), "name": ("utf8", "x"), '"char"': ("a", "b"),
    "bytea": ("\\x0102ff", "\\x61"), "date": ("2020-02-29", "2021-01-01"),
    "time without time zone": ("10:20:30.5", "23:00"),
    "time with time zone": ("10:20:30+02", "23:00-05"),
    "timestamp without time zone": ("2020-02-29 10:20:30", "2021-01-01"),
    "timestamp with time zone": ("2020-02-29 10:20:30+02", "2021-01-01+00"),
    "interval": ("1 day 02:03:04", "1 year 2 mons"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "json": ('{"a": 1, "b": [1, null]}', '[1, 2]'), "jsonb": ('{"a": 1, "b": [1, null]}', '[1, 2]'),
    "jsonpath": ("$.a", "$"), "bit": ("10101", "01100"), "bit varying": ("101", "1100"),
    "inet": ("192.168.1.5/24", "10.1.2.3"), "cidr": ("192.168.0.0/24", "10.0.0.0/8"),
    "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "macaddr8": ("08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03:04:06"),
    "money": ("12.50", "3"), "oid": ("23", "25"), "xid": ("3", "4"), "xid8": ("3", "4"),
    "pg_lsn": ("0/16", "0/1A"), "tid": ("(0,1)", "(0,2)"), "regclass": ("samples", "samples"),
    "regtype": ("int4", "text"), "xml": ("<a/>", "<b/>"),
    "point": ("(1,2)", "(0,0)"), "line": ("{1,2,3}", "{0,1,0}"),
    "lseg": ("[(0,0),(1,1)]", "[(1,0),(0,1)]"),
    "box": ("(1,1),(0,0)", "(3,3),(2,2)"), "path": ("((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"),
    "polygon": ("((0,0),(1,1),(2,0))", "((0,0),(1,1),(1,0))"), "circle": ("<(0,0),2>", "<(1,1),1>"),
    "tsvector": ("a:1 b:2", "c:1"), "tsquery": ("a & b", "c"), "regconfig": ("simple", "simple"),
    "int4range": ("[1,5)", "[3,9]"), "int8range": ("[1,5)", "[3,9]"),
    "numrange": ("[1.5,5)", "(3,9]"),
    "daterange": ("[2020-01-01,2020-02-01)", "[2020-01-15,2020-03-01)"),
    "tsrange": ("[2020-01-01,2020-02-01)", "[2020-01-15,2020-03-01)"),
    "tstzrange": ("[2020-01-01,2020-02-01)", "[2020-01-15,2020-03-01)"),
    "int4multirange": ("{[1,3),[5,7)}", "{[2,6)}"), "int8multirange": ("{[1,3),[5,7)}", "{[2,6)}"),
    "nummultirange": ("{[1,3),[5,7)}", "{[2,6)}"),
    "datemultirange": ("{[2020-01-01,2020-02-01)}", "{[2020-01-15,2020-03-01)}"),
    "tsmultirange": ("{[2020-01-01,2020-02-01)}", "{[2020-01-15,2020-03-01)}"),
    "tstzmultirange": ("{[2020-01-01,2020-02-01)}", "{[2020-01-15,2020-03-01)}"),
}  # fmt: skip
#: Types that take another one wherever they stand; each choice is tried.
_CHOICES = {
    "element": ("integer", "text"), "range": ("int4range", "daterange"),
}  # fmt: skip
_POLYMORPHIC = {
    **dict.fromkeys(("anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"), "{e}"),
    **dict.fromkeys(("anyarray", "anycompatiblearray"), "{e}[]"),
    **dict.fromkeys(("anyrange", "anycompatiblerange"), "{r}"),
    **dict.fromkeys(("anymultirange", "anycompatiblemultirange"), "{m}"),
    "anyenum": "mood", '"any"': "{e}", "record": "pair",
}  # fmt: skip
_OF_RANGE = {"int4range": ("integer", "int4multirange"), "daterange": ("date", "datemultirange")}
TYPES = tuple(_PLAIN)


def literal(kind: str, at: int) -> str | None:
    """One of two values of a type, cast to it; None for a type that nobody writes down."""
    if kind == "mood":
        return ("'ok'::mood", "'sad'::mood")[at]
    if kind == "pair":
        return ("row(1, 'x')", "row(2, 'y')")[at]
    if kind.endswith("[]"):
        own = [_PLAIN.get(kind[:-2], ("",))[0], _PLAIN.get(kind[:-2], ("", ""))[-1]]
        if kind[:-2] not in _PLAIN:
            return None
        quoted = ['"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in own]
        return f"'{{{','.join(quoted if at == 0 else quoted[:1])}}}'::{kind}"
    if kind not in _PLAIN:
        return None
    return f"'{_PLAIN[kind][at]}'::{kind}"


def arguments(kinds: Sequence[str]) -> Iterator[list[str]]:
    """Lists of arguments for parameters of these types."""
    open_ = any(kind in _POLYMORPHIC for kind in kinds)
    ranged = any("range" in kind and kind in _POLYMORPHIC for kind in kinds)
    chosen = _CHOICES["range" if ranged else "element"] if open_ else ("integer",)
    for choice in chosen:
        element, several = _OF_RANGE[choice] if ranged else (choice, "")
        of = {"e": element, "r": choice, "m": several}
        told = [_POLYMORPHIC.get(kind, kind).format(**of) for kind in kinds]
        for at in (0, 1):
            made = [literal(kind, at if n == 0 else 1 - at) for n, kind in enumerate(told)]
            if None not in made:
                yield [each for each in made if each is not None]
