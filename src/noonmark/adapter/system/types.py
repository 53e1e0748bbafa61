"""The types that pg_type lists: ours, their arrays, and those that PostgreSQL's catalog speaks of.

The last are only names here: their values are integers or text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.rows.pg.oid import TOLD, oid, type_of, type_size


@dataclass(frozen=True)
class TypeRow:
    """One type as pg_type has it."""

    oid: int
    name: str
    size: int
    category: str
    array: int = 0
    element: int = 0
    kind: str = "b"


def _catalog_name(kind: type[t.Coded]) -> str:
    return kind.names[0] if kind.names else kind.spelling


_OWN: tuple[tuple[str, t.SqlType, str], ...] = (
    ("bool", t.Boolean(), "B"),
    ("bytea", t.Bytea(), "U"),
    ("int8", t.BigInt(), "N"),
    ("int2", t.SmallInt(), "N"),
    ("int4", t.Integer(), "N"),
    ("text", t.Text(), "S"),
    ("float4", t.Real(), "N"),
    ("float8", t.Double(), "N"),
    ("bpchar", t.Char(None), "S"),
    ("varchar", t.Varchar(), "S"),
    ("date", t.Date(), "D"),
    ("time", t.Time(), "D"),
    ("timestamp", t.Timestamp(), "D"),
    ("timestamptz", t.TimestampTz(), "D"),
    ("interval", t.Interval(), "T"),
    ("numeric", t.Numeric(), "N"),
    ("uuid", t.Uuid(), "U"),
    ("jsonb", t.Jsonb(), "U"),
    ("json", t.Json(), "U"),
    *((_catalog_name(kind), kind(), kind.category) for kind in CODED),
)
#: The categories of types of the catalog that are no kind of number.
_CATEGORIES = {
    **dict.fromkeys(("char", "pg_node_tree"), "Z"), **dict.fromkeys(("xid", "aclitem"), "U"),
    **dict.fromkeys(("cstring", "anyarray", "void"), "P"), "name": "S",
}  # fmt: skip
_VECTORS = (
    TypeRow(22, "int2vector", -1, "A", 1006, 21),
    TypeRow(1006, "_int2vector", -1, "A", 0, 22),
    TypeRow(30, "oidvector", -1, "A", 1013, 26),
    TypeRow(1013, "_oidvector", -1, "A", 0, 30),
    TypeRow(705, "unknown", -2, "X", 0, 0, "p"),
    TypeRow(2249, "record", -1, "P", 2287, 0, "p"),
)


def _of_the_catalog() -> Iterator[TypeRow]:
    for name, (number, array, size) in TOLD.items():
        category = _CATEGORIES.get(name, "N")
        yield TypeRow(number, name, size, category, array, 0, "p" if category == "P" else "b")
        if array:
            yield TypeRow(array, f"_{name}", -1, "A", 0, number)


def _rows() -> tuple[TypeRow, ...]:
    found = [*_VECTORS, *_of_the_catalog()]
    for name, kind, category in _OWN:
        number, array = oid(kind), oid(t.Array(kind))
        letter = kind.catalog_kind if isinstance(kind, t.Coded) else "b"
        found.append(TypeRow(number, name, type_size(kind), category, array, 0, letter))
        found.append(TypeRow(array, f"_{name}", -1, "A", 0, number))
    return tuple(sorted(found, key=lambda row: row.oid))


TYPES = _rows()
#: The functions of a type are called after it (int4recv), except those of these.
STEMS = {
    name: f"{name}_" for name in ("numeric", "date", "time", "timestamp", "timestamptz", "interval",
                                  "uuid", "json", "jsonb", "record", "void", "cstring", "anyarray",
                                  "pg_node_tree")
} | {_catalog_name(kind): kind.stem or f"{_catalog_name(kind)}_" for kind in CODED}  # fmt: skip
TYPE_NAMES = {row.name: row.oid for row in TYPES}
TYPE_OIDS = frozenset(TYPE_NAMES.values())
_SHOWN = {18: '"char"', 1002: '"char"[]', 1042: "character", 1014: "character[]"}
_UNBOUNDED = {1042: "bpchar", 1014: "bpchar[]", 1560: '"bit"', 1561: '"bit"[]'}


def functions_of(row: TypeRow) -> tuple[str, ...]:
    """What reads and writes the values of a type."""
    stem = "array_" if row.name.startswith("_") else STEMS.get(row.name, row.name)
    reads, writes = f"{stem}in", f"{stem}out"
    if row.name == "aclitem":  # it has no binary form
        return reads, writes, "-", "-"
    return reads, writes, f"{stem}recv", f"{stem}send"


def row_of(number: int) -> TypeRow | None:
    """A type of PostgreSQL's own by its number."""
    return _ROWS.get(number)


_ROWS = {row.oid: row for row in TYPES}


def format_type(number: int | None, modifier: int | None) -> str | None:
    """The type's name as SQL writes it."""
    if number is None:
        return None
    given = -1 if modifier is None else modifier
    if modifier is not None and given < 0 and number in _UNBOUNDED:
        return _UNBOUNDED[number]
    if given < 0 and number in _SHOWN:
        return _SHOWN[number]
    try:
        return str(type_of(number, given))
    except NoonmarkError:
        row = _ROWS.get(number)
        if row is None:
            return "-" if number == 0 else "???"
        return f"{row.name[1:]}[]" if row.name.startswith("_") else row.name
