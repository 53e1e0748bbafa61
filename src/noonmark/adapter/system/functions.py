"""Functions that the session answers: who asks, what time it is, what the catalog says.

They exist in one-shot queries only: a maintained view is a function of collections alone.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import DATABASE
from noonmark.adapter.session.channels import Announcement, announce
from noonmark.adapter.session.locks import about_locks
from noonmark.adapter.session.numbers import about_numbers
from noonmark.adapter.system.backends import about_backends
from noonmark.adapter.system.chance import about_chance
from noonmark.adapter.system.described import about_descriptions
from noonmark.adapter.system.objects import about_objects, ask
from noonmark.adapter.system.positions import about_positions
from noonmark.adapter.system.properties import about_properties
from noonmark.adapter.system.rights import about_rights
from noonmark.adapter.system.sequences import about_sequences
from noonmark.adapter.system.settings import checked, search_path, value_of
from noonmark.adapter.system.sizes import about_sizes
from noonmark.errors import Unsupported
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function, Table
from noonmark.version import __version__

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

VERSION = f"PostgreSQL 15.0 on Noonmark {__version__}"
_INT, _TEXT, _BOOL = t.Integer, t.Text, t.Boolean


def session_functions(session: AdapterSession) -> Table[Function]:
    """What a session's queries may ask of it. The answers are those of the moment of asking."""
    table: Table[Function] = Table()
    table.add(_about_session(session))
    table.add(_about_time(session))
    table.add(about_objects(session))
    table.add(about_rights(session))
    table.add(about_sequences(session))
    table.add(about_chance(session))
    table.add(about_sizes(session))
    table.add(about_locks(session))
    table.add(about_numbers(session))
    table.add(about_descriptions(session))
    table.add(about_backends(session))
    table.add(about_properties(session))
    table.add(about_positions(session))
    table.add(_constants())
    return table


def _about_session(session: AdapterSession) -> list[Function]:
    def setting(name: str, missing_ok: bool = False) -> str | None:
        return value_of(session.shown_variables, name, missing_ok)

    def set_config(name: str, value: str, local: bool) -> str:
        if local:
            raise Unsupported("set_config for a transaction is not supported")
        own, kept = checked(name, value)
        session.set_variable(own, kept)
        return kept

    def schemas(implicit: bool) -> tuple[str, ...]:
        path = [name for name in search_path(session.variables) if session.catalog.has_schema(name)]
        return ("pg_catalog", *path) if implicit else tuple(path)

    def notify(channel: str, payload: str) -> str:
        announce(session, Announcement("notify", channel, payload))
        return ""

    text, name = t.Text(), t.Text("name")
    return [
        *(ask(n, (), name, lambda: session.user) for n in ("current_user", "current_role", "user")),
        ask("session_user", (), name, lambda: session.session_user),
        *(ask(n, (), name, lambda: DATABASE) for n in ("current_database", "current_catalog")),
        ask("current_schema", (), name, lambda: next(iter(schemas(False)), None)),
        ask("current_schemas", (_BOOL,), t.Array(name), schemas),
        ask("version", (), text, lambda: VERSION),
        ask("mz_version", (), text, lambda: __version__),
        ask("pg_backend_pid", (), t.Integer(), lambda: session.id),
        ask("set_config", (_TEXT, _TEXT, _BOOL), text, set_config, fallible=True),
        ask("current_setting", (_TEXT,), text, setting, fallible=True),
        ask("current_setting", (_TEXT, _BOOL), text, setting, fallible=True),
        ask("pg_notify", (_TEXT, _TEXT), t.Text("void"), notify, fallible=True, volatile=True),
        ask("inet_server_port", (), t.Integer(), lambda: None),
        ask("pg_is_in_recovery", (), t.Boolean(), lambda: False),
        ask("mz_environment_id", (), text, lambda: DATABASE),
    ]


def _about_time(session: AdapterSession) -> list[Function]:
    """One moment for a whole transaction, except for the clock itself."""

    def now() -> dt.datetime:
        return dt.datetime.fromtimestamp(session.moment_ms / 1000, dt.UTC)

    def clock() -> dt.datetime:
        return dt.datetime.fromtimestamp(session.database.clock.now_ms() / 1000, dt.UTC)

    stamps = ("now", "statement_timestamp", "transaction_timestamp")
    return [
        *(ask(name, (), t.TimestampTz(), now) for name in stamps),
        ask("clock_timestamp", (), t.TimestampTz(), clock),
        ask("localtimestamp", (), t.Timestamp(), lambda: now().replace(tzinfo=None)),
        ask("current_date", (), t.Date(), lambda: now().date()),
        ask("localtime", (), t.Time(), lambda: now().time()),
    ]


# --- what is the same for everybody


def _constants() -> list[Function]:
    text, zero = t.Text(), lambda *_: 0
    return [
        ask("getdatabaseencoding", (), text, lambda: "UTF8"),
        ask("pg_encoding_to_char", (_INT,), t.Text("name"), lambda _: "UTF8"),
        ask("pg_char_to_encoding", (_TEXT,), t.Integer(), lambda _: 6),
        ask("pg_get_function_result", (_INT,), text, lambda _: None),
        ask("pg_get_function_arguments", (_INT,), text, lambda _: None),
        ask("pg_get_function_identity_arguments", (_INT,), text, lambda _: None),
        ask("pg_get_function_sqlbody", (_INT,), text, lambda _: None),
        ask("pg_get_partkeydef", (_INT,), text, lambda _: None),
        # There are no rules, triggers, statistics objects or functions with a definition.
        *(
            ask(name, (_INT, *more), text, lambda *_: None)
            for name in ("pg_get_ruledef", "pg_get_triggerdef")
            for more in ((), (_BOOL,))
        ),
        *(
            ask(name, (_INT,), text, lambda _: None)
            for name in ("pg_get_functiondef", "pg_get_statisticsobjdef")
        ),
        ask("pg_client_encoding", (), t.Text("name"), lambda: "UTF8"),
        ask("pg_jit_available", (), t.Boolean(), lambda: False),
        ask("pg_trigger_depth", (), t.Integer(), zero),
        ask("pg_current_logfile", (), text, lambda: None),
        # A read waits for no other session to end.
        ask("pg_safe_snapshot_blocking_pids", (_INT,), t.Array(t.Integer()), lambda _: ()),
        ask("pg_get_statisticsobjdef_columns", (_INT,), text, lambda _: None),
        ask("pg_relation_is_publishable", (_INT,), t.Boolean(), lambda _: False),
        ask("pg_tablespace_location", (_INT,), text, lambda _: ""),
        ask("pg_is_other_temp_schema", (_INT,), t.Boolean(), lambda _: False),
        ask("pg_my_temp_schema", (), t.Integer("oid"), zero),
        ask("pg_stat_get_numscans", (_INT,), t.BigInt(), zero),
        # A name is an array of characters in PostgreSQL, and counted from 0; here it is text.
        ask("name_character", (_TEXT, _INT), text, lambda name, at: name[at : at + 1] or None),
    ]
