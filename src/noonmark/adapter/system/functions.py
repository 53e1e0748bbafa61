"""Functions that the session answers: who asks, what time it is, what the catalog says.

They exist in one-shot queries only: a maintained view is a function of collections alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import has
from noonmark.adapter.system.facts import DATABASE, Facts
from noonmark.adapter.system.pg_catalog import KEY_OID_BASE
from noonmark.adapter.system.settings import value_of
from noonmark.adapter.system.types import TYPE_NAMES, format_type
from noonmark.errors import InvalidValue, NoonmarkError, UndefinedTable
from noonmark.rows import types as t
from noonmark.rows.pgoid import oid
from noonmark.rows.types import parse_type, quote_name
from noonmark.sql.functions.function import Any_, Function, Parameter, Table
from noonmark.version import __version__

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession

VERSION = f"PostgreSQL 15.0 on Noonmark {__version__}"
_INT, _TEXT, _BOOL = t.Integer, t.Text, t.Boolean
_TEXTS = t.Array(t.Text())


def session_functions(session: AdapterSession) -> Table[Function]:
    """What a session's queries may ask of it. The answers are those of the moment of asking."""
    table: Table[Function] = Table()
    table.add(_about_session(session))
    table.add(_about_time(session))
    table.add(_about_objects(session))
    table.add(_about_rights(session))
    table.add(_constants())
    return table


def _ask(
    name: str,
    parameters: tuple[Parameter, ...],
    result: t.SqlType,
    meaning: Callable[..., Any],
    *,
    strict: bool = True,
    fallible: bool = False,
) -> Function:
    return Function(name, parameters, result, meaning, strict, gives_null=True, fallible=fallible)


def _about_session(session: AdapterSession) -> list[Function]:
    def setting(name: str, missing_ok: bool = False) -> str | None:
        return value_of(session.variables, name, missing_ok)

    def schemas(implicit: bool) -> tuple[str, ...]:
        return ("pg_catalog", "public") if implicit else ("public",)

    text = t.Text()
    return [
        *(_ask(n, (), text, lambda: session.user) for n in ("current_user", "session_user")),
        _ask("user", (), text, lambda: session.user),
        *(_ask(n, (), text, lambda: DATABASE) for n in ("current_database", "current_catalog")),
        _ask("current_schema", (), text, lambda: "public"),
        _ask("current_schemas", (_BOOL,), _TEXTS, schemas),
        _ask("version", (), text, lambda: VERSION),
        _ask("mz_version", (), text, lambda: __version__),
        _ask("pg_backend_pid", (), t.Integer(), lambda: session.id),
        _ask("current_setting", (_TEXT,), text, setting, fallible=True),
        _ask("current_setting", (_TEXT, _BOOL), text, setting, fallible=True),
        _ask("inet_server_addr", (), text, lambda: None),
        _ask("inet_server_port", (), t.Integer(), lambda: None),
        _ask("inet_client_addr", (), text, lambda: None),
        _ask("pg_is_in_recovery", (), t.Boolean(), lambda: False),
        _ask("txid_current", (), t.BigInt(), lambda: 0),
        _ask("pg_current_xact_id_if_assigned", (), t.BigInt(), lambda: None),
        _ask("mz_environment_id", (), text, lambda: DATABASE),
    ]


def _about_time(session: AdapterSession) -> list[Function]:
    """One moment for a whole transaction, except for the clock itself."""

    def now() -> dt.datetime:
        return dt.datetime.fromtimestamp(session.moment_ms / 1000, dt.UTC)

    def clock() -> dt.datetime:
        return dt.datetime.fromtimestamp(session.database.clock.now_ms() / 1000, dt.UTC)

    stamps = ("now", "statement_timestamp", "transaction_timestamp")
    return [
        *(_ask(name, (), t.TimestampTz(), now) for name in stamps),
        _ask("clock_timestamp", (), t.TimestampTz(), clock),
        _ask("localtimestamp", (), t.Timestamp(), lambda: now().replace(tzinfo=None)),
        _ask("current_date", (), t.Date(), lambda: now().date()),
        _ask("localtime", (), t.Time(), lambda: now().time()),
        _ask("pg_postmaster_start_time", (), t.TimestampTz(), now),
    ]


# --- objects


class _Numbered:
    """The items by oid, kept for as long as the catalog is the same: asked once per row."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._items: dict[int, Item] = {}

    def of(self, catalog: Catalog) -> dict[int, Item]:
        if self._catalog is not catalog:
            self._catalog, self._items = catalog, {i.oid: i for i in catalog.items()}
        return self._items


_ALWAYS_VISIBLE = tuple(
    f"pg_{what}_is_visible"
    for what in (
        "type",
        "function",
        "opclass",
        "operator",
        "collation",
        "conversion",
        "ts_config",
        "statistics_obj",
    )
)


def _about_objects(session: AdapterSession) -> list[Function]:
    def facts() -> Facts:
        return Facts.of(session)

    numbered = _Numbered()

    def found(number: int) -> Item | None:
        return numbered.of(session.catalog).get(number)

    def regclass(name: str) -> int:
        if name.isdigit():
            return int(name)
        item = session.catalog.find(_parts(name))
        if item is None or not (item.is_relation or item.kind == "index"):
            raise UndefinedTable(f'relation "{name}" does not exist')
        return item.oid

    def to_regclass(name: str) -> int | None:
        try:
            return regclass(name)
        except UndefinedTable:
            return None

    def class_name(number: int) -> str:
        item = found(number)
        if item is None:
            return "-" if number == 0 else str(number)
        shown = quote_name(item.name)
        in_path = item.schema_name in ("public", "pg_catalog")
        return shown if in_path else f"{quote_name(item.schema_name)}.{shown}"

    def visible(number: int) -> bool:
        item = found(number - KEY_OID_BASE if number > KEY_OID_BASE else number)
        if item is None:
            return False
        # Noonmark's own schemas are in the path of names, and would be all that \d shows.
        own = item.kind == "system" and item.schema_name != "pg_catalog"
        return not own and session.catalog.find((item.name,)) == item

    def role_name(number: int) -> str:
        role = next((r for r in session.catalog.items("role") if r.oid == number), None)
        return DATABASE if role is None else role.name

    def viewdef(number: int, *_: Any) -> str | None:
        item = found(number)
        if item is None or item.kind not in ("view", "materialized-view"):
            return None
        return f" {item.definition.get('query', '')};"

    def described(number: int, *_: Any) -> str | None:
        item = found(number)
        return None if item is None else item.comments.get("")

    def column_comment(number: int, at: int) -> str | None:
        item = found(number)
        if item is None or not 1 <= at <= len(item.schema):
            return None
        return item.comments.get(item.schema.names[at - 1])

    def indexdef(number: int, at: int = 0, *_: Any) -> str | None:
        from noonmark.adapter.system.pg_index import index_definition

        return index_definition(facts(), number, at)

    def constraintdef(number: int, *_: Any) -> str | None:
        from noonmark.adapter.system.pg_index import constraint_definition

        return constraint_definition(facts(), number)

    def namespace(name: str) -> int:
        return int(name) if name.isdigit() else facts().schema_oid(name)

    def namespace_name(number: int) -> str:
        from noonmark.adapter.system.pg_catalog import schema_oids

        names = {own: name for name, own in schema_oids(facts())}
        return names.get(number, str(number))

    text = t.Text()
    return [
        _ask("regclass", (_TEXT,), t.Integer(), regclass, fallible=True),
        _ask("regclass", (_INT,), text, class_name),
        _ask("to_regclass", (_TEXT,), t.Integer(), to_regclass),
        _ask("regtype", (_TEXT,), t.Integer(), _type_oid, fallible=True),
        _ask("regtype", (_INT,), text, lambda number: format_type(number, None)),
        _ask("to_regtype", (_TEXT,), t.Integer(), _to_type_oid),
        _ask("regproc", (_INT,), text, lambda number: "-" if number == 0 else str(number)),
        # Functions have no oid here: pg_type names them, and a name stands for itself.
        _ask("regproc", (_TEXT,), text, lambda name: _parts(name)[-1]),
        _ask("regprocedure", (_INT,), text, lambda number: "-" if number == 0 else str(number)),
        _ask("regnamespace", (_TEXT,), t.Integer(), namespace),
        _ask("regnamespace", (_INT,), text, namespace_name),
        _ask("regrole", (_INT,), text, role_name),
        _ask("regrole", (_TEXT,), t.Integer(), lambda name: facts().role_oid(name)),
        _ask("pg_table_is_visible", (_INT,), t.Boolean(), visible),
        *(_ask(name, (_INT,), t.Boolean(), lambda _: True) for name in _ALWAYS_VISIBLE),
        _ask("pg_get_userbyid", (_INT,), text, role_name),
        *(_ask("pg_get_viewdef", (_INT, *more), text, viewdef) for more in ((), (_BOOL,), (_INT,))),
        _ask("pg_get_viewdef", (_TEXT,), text, lambda name: viewdef(regclass(name)), fallible=True),
        _ask("obj_description", (_INT,), text, described),
        _ask("obj_description", (_INT, _TEXT), text, described),
        _ask("col_description", (_INT, _INT), text, column_comment),
        _ask("shobj_description", (_INT, _TEXT), text, lambda *_: None),
        _ask("pg_get_indexdef", (_INT,), text, indexdef),
        _ask("pg_get_indexdef", (_INT, _INT, _BOOL), text, indexdef),
        _ask("pg_get_constraintdef", (_INT,), text, constraintdef),
        _ask("pg_get_constraintdef", (_INT, _BOOL), text, constraintdef),
        *(
            _ask("pg_get_expr", (_TEXT, _INT, *more), text, lambda value, *_: value)
            for more in ((), (_BOOL,))
        ),
        _ask("format_type", (_INT, _INT), text, format_type, strict=False),
    ]


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name as it is written in a string."""
    from noonmark.sql.lexer import tokens_of

    words = [token.value for token in tokens_of(name) if token.kind in ("word", "quoted")]
    return tuple(words) or (name,)


def _type_oid(name: str) -> int:
    if name.isdigit():
        return int(name)
    plain = name.removeprefix("pg_catalog.").strip('"')
    if plain in TYPE_NAMES:
        return TYPE_NAMES[plain]
    try:
        return oid(parse_type(plain))
    except NoonmarkError:
        raise InvalidValue(f'type "{name}" does not exist') from None


def _to_type_oid(name: str) -> int | None:
    try:
        return _type_oid(name)
    except NoonmarkError:
        return None


# --- rights


def _about_rights(session: AdapterSession) -> list[Function]:
    def may(item: Item | None, rights: str, user: str | None = None) -> bool | None:
        if item is None:
            return None
        asked = [right.strip().upper() for right in rights.split(",")]
        return any(has(session.catalog, user or session.user, right, item) for right in asked)

    def by_oid(number: int, rights: str) -> bool | None:
        return may(Facts.of(session).by_oid(number), rights)

    def by_name(name: str, rights: str) -> bool | None:
        return may(session.catalog.find(_parts(name)), rights)

    def of_user(user: str, name: str, rights: str) -> bool | None:
        return may(session.catalog.find(_parts(name)), rights, user)

    def of_user_by_oid(user: str, number: int, rights: str) -> bool | None:
        return may(Facts.of(session).by_oid(number), rights, user)

    boolean = t.Boolean()
    free = ("schema", "database", "function", "language", "sequence", "type", "server")
    return [
        *(
            _ask(f"has_{what}_privilege", (*who, first, _TEXT), boolean, meaning)
            for what in ("table", "any_column")
            for who, first, meaning in (
                ((), _INT, by_oid),
                ((), _TEXT, by_name),
                ((_TEXT,), _TEXT, of_user),
                ((_TEXT,), _INT, of_user_by_oid),
            )
        ),
        *(
            _ask(f"has_{what}_privilege", (*who, first, _TEXT), boolean, lambda *_: True)
            for what in free
            for who in ((), (_TEXT,))
            for first in (_INT, _TEXT)
        ),
        _ask("pg_has_role", (Any_.ANY, Any_.ANY, _TEXT), boolean, lambda *_: True),
        _ask("pg_has_role", (Any_.ANY, _TEXT), boolean, lambda *_: True),
        _ask("row_security_active", (Any_.ANY,), boolean, lambda _: False),
    ]


# --- what is the same for everybody


def _constants() -> list[Function]:
    text, zero = t.Text(), lambda *_: 0
    return [
        _ask("getdatabaseencoding", (), text, lambda: "UTF8"),
        _ask("pg_encoding_to_char", (_INT,), text, lambda _: "UTF8"),
        _ask("pg_char_to_encoding", (_TEXT,), t.Integer(), lambda _: 6),
        _ask("pg_get_function_result", (_INT,), text, lambda _: None),
        _ask("pg_get_function_arguments", (_INT,), text, lambda _: None),
        _ask("pg_get_function_identity_arguments", (_INT,), text, lambda _: None),
        _ask("pg_get_partkeydef", (_INT,), text, lambda _: None),
        _ask("pg_get_ruledef", (_INT, _BOOL), text, lambda *_: None),
        _ask("pg_get_triggerdef", (_INT, _BOOL), text, lambda *_: None),
        _ask("pg_get_statisticsobjdef_columns", (_INT,), text, lambda _: None),
        _ask("pg_get_serial_sequence", (_TEXT, _TEXT), text, lambda *_: None),
        _ask("pg_relation_is_publishable", (_INT,), t.Boolean(), lambda _: False),
        _ask("pg_relation_size", (_INT,), t.BigInt(), zero),
        _ask("pg_table_size", (_INT,), t.BigInt(), zero),
        _ask("pg_total_relation_size", (_INT,), t.BigInt(), zero),
        _ask("pg_indexes_size", (_INT,), t.BigInt(), zero),
        _ask("pg_database_size", (Any_.ANY,), t.BigInt(), zero),
        _ask("pg_size_pretty", (t.BigInt,), text, lambda size: f"{size} bytes"),
        _ask("pg_tablespace_location", (_INT,), text, lambda _: ""),
        _ask("pg_is_other_temp_schema", (_INT,), t.Boolean(), lambda _: False),
        _ask("pg_my_temp_schema", (), t.Integer(), zero),
        _ask("quote_ident", (_TEXT,), text, quote_name),
        _ask("pg_stat_get_numscans", (_INT,), t.BigInt(), zero),
    ]
