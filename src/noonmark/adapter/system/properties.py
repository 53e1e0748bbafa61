"""What indexes can do, where relations are stored, and objects by names that may be nobody's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.system.objects import Objects, ask, parts_of
from noonmark.adapter.system.settings import VARIABLES
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.types import parse_type, quote_name
from noonmark.sql.functions import AGGREGATES, FUNCTIONS, TABLE_FUNCTIONS, WINDOWS
from noonmark.sql.functions.function import Any_, Function, Signature

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_BTREE = 403
_OF_METHOD = dict.fromkeys(
    ("can_order", "can_unique", "can_multi_col", "can_exclude", "can_include"), True
)
_OF_INDEX = dict.fromkeys(("clusterable", "index_scan", "bitmap_scan", "backward_scan"), True)
_OF_COLUMN = {
    "asc": True, "desc": False, "nulls_first": False, "nulls_last": True, "orderable": True,
    "distance_orderable": False, "returnable": True, "search_array": True, "search_nulls": True,
}  # fmt: skip
#: In pg_class and pg_index: columns by their places.
_OID, _NAME, _KIND = 0, 1, 16
_INDEX, _WIDTH = 0, 2
#: Kinds of relations that are stored.
_STORED = frozenset("rmiS")


class _Asked:
    """The questions of one session."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session

    def _rows(self, name: str) -> Sequence[tuple[Any, ...]]:
        return self._session.system_rows(f"pg_catalog.{name}")

    def of_index(self, number: int, name: str) -> bool | None:
        """What all indexes can do: each is a btree, as pg_class says."""
        kinds = (row[_KIND] for row in self._rows("pg_class") if row[_OID] == number)
        return _OF_INDEX.get(name.lower()) if next(kinds, "") == "i" else None

    def of_column(self, number: int, at: int, name: str) -> bool | None:
        """What a column of an index can do."""
        widths = (row[_WIDTH] for row in self._rows("pg_index") if row[_INDEX] == number)
        return _OF_COLUMN.get(name.lower()) if 1 <= at <= next(widths, 0) else None

    def filenode(self, number: int) -> int | None:
        """What pg_class says of where a relation is stored: its own number."""
        rows = (row for row in self._rows("pg_class") if row[_OID] == number)
        return next((row[_OID] for row in rows if row[_KIND] in _STORED), None)

    def filenode_of(self, name: str) -> int | None:
        """The same, of a name."""
        return self.filenode(Objects(self._session).regclass(name))

    def collation(self, name: str) -> int | None:
        """A collation by its name."""
        own = parts_of(name)[-1]
        return next((row[_OID] for row in self._rows("pg_collation") if row[_NAME] == own), None)

    def collation_name(self, number: int) -> str:
        """The name of a collation, as SQL writes it."""
        names = (row[_NAME] for row in self._rows("pg_collation") if row[_OID] == number)
        found = next(names, None)
        if found is not None:
            return quote_name(found)
        return "-" if number == 0 else str(number)


#: Operators that are calls of functions of another name.
_ROOTS = {"|/": "sqrt", "||/": "cbrt"}


class _Named:
    """Functions and operators by name: those of the language and those that the session answers."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session

    def _signatures(self, name: str) -> list[Signature]:
        own = _ROOTS.get(name, name)
        found: list[Signature] = []
        for table in (FUNCTIONS, AGGREGATES, WINDOWS, TABLE_FUNCTIONS, self._session.functions):
            found += table.by_name.get(own, ())
        if name in _ROOTS:
            return [each for each in found if each.parameters == (t.Double,)]
        return found

    def function(self, name: str) -> str | None:
        """A function by its name alone: there must be one of that name, not several."""
        own = parts_of(name)[-1]
        known = not _is_sign(own) and len(self._signatures(own)) == 1
        return quote_name(own) if known else None

    def procedure(self, text: str) -> str | None:
        """``abs(int)``: a function by its name and the types that it takes."""
        return self._with_types(text, signs=False)

    def sign(self, name: str) -> str | None:
        """An operator by its sign alone."""
        own = name.strip().removeprefix("pg_catalog.")
        return own if _is_sign(own) and len(self._signatures(own)) == 1 else None

    def operator(self, text: str) -> str | None:
        """``*(int,int)``: an operator by its sign and the types beside it."""
        return self._with_types(text, signs=True)

    def _with_types(self, text: str, *, signs: bool) -> str | None:
        head, bracket, rest = text.strip().removeprefix("pg_catalog.").partition("(")
        if not bracket or not rest.rstrip().endswith(")"):
            return None
        name = head.strip() if signs else parts_of(head)[-1]
        inside = rest.rstrip()[:-1].strip()
        try:
            kinds = [parse_type(each) for each in inside.split(",")] if inside else []
        except NoonmarkError:
            return None
        known = any(_takes(each, kinds) for each in self._signatures(name))
        if _is_sign(name) != signs or not known:
            return None
        shown = ",".join(str(e) if isinstance(e, t.Array) else e.spelling for e in kinds)
        return f"{name if signs else quote_name(name)}({shown})"


def _is_sign(name: str) -> bool:
    return bool(name) and not any(each.isalnum() or each in "_ " for each in name)


def _takes(entry: Signature, kinds: Sequence[t.SqlType]) -> bool:
    return len(kinds) == len(entry.parameters) and all(
        parameter is type(kind) for parameter, kind in zip(entry.parameters, kinds, strict=True)
    )


def _flags(name: str) -> tuple[str, ...] | None:
    """The marks of a setting: none has any; NULL where there is no such setting."""
    return () if name.lower() in VARIABLES else None


def about_properties(session: AdapterSession) -> list[Function]:
    """The functions, for one session."""
    asked, boolean, text = _Asked(session), t.Boolean(), t.Text()
    name, oid, named = t.Text, t.Integer, _Named(session)

    def of_method(method: int, what: str) -> bool | None:
        return _OF_METHOD.get(what.lower()) if method == _BTREE else None

    return [
        ask("pg_indexam_has_property", (oid, name), boolean, of_method),
        ask("pg_index_has_property", (oid, name), boolean, asked.of_index),
        ask("pg_index_column_has_property", (oid, oid, name), boolean, asked.of_column),
        ask("pg_settings_get_flags", (name,), t.Array(text), _flags),
        ask("pg_relation_filenode", (oid,), t.Integer("oid"), asked.filenode),
        ask("pg_relation_filenode", (name,), t.Integer("oid"), asked.filenode_of, fallible=True),
        ask(
            "pg_filenode_relation",
            (oid, oid),
            t.Integer("regclass"),
            lambda _, node: asked.filenode(node),
        ),
        ask("to_regcollation", (name,), t.Integer("regcollation"), asked.collation),
        ask("regcollation", (name,), t.Integer("regcollation"), asked.collation),
        ask("regcollation", (oid,), t.Text("regcollation"), asked.collation_name),
        ask("to_regproc", (name,), t.Text("regproc"), named.function),
        ask("to_regprocedure", (name,), t.Text("regprocedure"), named.procedure),
        ask("to_regoper", (name,), t.Text("regoper"), named.sign),
        ask("to_regoperator", (name,), t.Text("regoperator"), named.operator),
        # No value is compressed on its own.
        ask("pg_column_compression", (Any_.ANY,), text, lambda _: None),
    ]
