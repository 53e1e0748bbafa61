"""Making and unmaking what a PostgreSQL source needs upstream: one replication slot.

`create` makes the slot first and describes the tables under the snapshot that it starts from, so
description, snapshot and stream are of one moment. If anything fails, the slot is dropped again: a
slot that nobody reads keeps the server's log for ever.

Where it runs: driver.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg

from noonmark.errors import ConfigError, NoonmarkError, SourceError, SourceStalled
from noonmark.peer import ask
from noonmark.source.impl.postgres.describe import Table, check_identity, read_tables
from noonmark.source.impl.postgres.session import (
    connect,
    identifier,
    literal,
    meaning,
    session,
)
from noonmark.source.impl.postgres.snapshot import Held
from noonmark.source.impl.postgres.source import Postgres

LOG = logging.getLogger("noonmark.work")

_DROP_TRIES, _DROP_PAUSE_S = 100, 0.05
#: An hour, where upstream refuses at once.
_LATER_TRIES, _LATER_PAUSE_S = 720, 5.0
_END = """
select pg_terminate_backend(active_pid) from pg_replication_slots
where slot_name = %s and active_pid is not null
"""
_DROP = """
select pg_drop_replication_slot(slot_name) from pg_replication_slots
where slot_name = %s and database = current_database()
"""
_PUBLISHED = """
select pubinsert and pubupdate and pubdelete and pubtruncate,
       (select min(schemaname || '.' || tablename) from pg_publication_tables t
        join pg_namespace n on n.nspname = t.schemaname
        join pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
        where t.pubname = p.pubname and c.relkind = 'p')
from pg_publication p where pubname = %s
"""
_SELF = """
select (select system_identifier from pg_control_system()),
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
"""


async def create(
    url: str, publication: str, slot: str, tables: Sequence[tuple[str, str]] | None = None
) -> Postgres:
    """A source over a publication: all of its tables, or those named as (schema, name).

    Raises:
        ConfigError: upstream is not set up for it; the hint says what to run there.
        SourceStalled: it does not answer.
    """
    making = partial(_create, url, publication, slot, tables)
    return await ask("statement", "on PostgreSQL", making, undo=unmake)


def _create(
    url: str, publication: str, slot: str, tables: Sequence[tuple[str, str]] | None
) -> Postgres:
    check(url, publication)
    held = Held.with_slot(url, slot)
    try:
        found, system_id, timeline = described(url, publication, held, tables)
        for table in found:
            check_identity(table)
        if not found:
            raise ConfigError(f'publication "{publication}" has no tables')
        source = Postgres(url, publication, slot, held.position.lsn, system_id, timeline, found)
    except BaseException as error:
        held.close()
        drop_slot_now(url, slot)
        if isinstance(error, psycopg.Error):
            raise SourceStalled(meaning(error).message) from error
        raise
    source._live.held = held
    return source


def unmake(source: Postgres) -> None:
    """Take away what was made for a statement that has failed, or ended before; blocks."""
    source.close()
    drop_slot_now(source.url, source.slot)


def described(
    url: str, publication: str, held: Held, tables: Sequence[tuple[str, str]] | None
) -> tuple[tuple[Table, ...], int, int]:
    """The tables as a snapshot has them, which cluster it is of, and which history."""
    with connect(url) as connection, connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        connection.execute(f"set transaction snapshot {literal(held.name)}")
        found = read_tables(connection, publication, tables)
        _check_visible(connection, found)
        system_id, timeline = connection.execute(_SELF).fetchone() or (0, 0)
    return found, system_id, timeline


def _check_visible(connection: psycopg.Connection[Any], tables: Sequence[Table]) -> None:
    """Refuse a table of which the role sees a part: the log has all of it."""
    hidden = "select unnest from unnest(%s::oid[]) where row_security_active(unnest)"
    row = connection.execute(hidden, ([table.oid for table in tables],)).fetchone()
    if row is not None:
        name = next(table.full_name for table in tables if table.oid == row[0])
        raise ConfigError(
            f"row-level security hides rows of table {name} from the role of the connection",
            hint="Run upstream, as a superuser: ALTER ROLE ... BYPASSRLS, or let the role own the"
            " table.",
        )


def check(url: str, publication: str | None = None) -> None:
    """Refuse an upstream that cannot be a source, before anything is made there."""
    with session(url) as connection:
        row = connection.execute("select current_setting('wal_level'), pg_is_in_recovery()")
        level, standby = row.fetchone() or ("", False)
        if level != "logical":
            raise ConfigError(
                f"upstream has wal_level = {level}",
                hint="Set wal_level = logical there, and restart it.",
            )
        if standby:
            raise ConfigError("upstream is a standby", hint="Connect to the primary.")
        if publication is not None:
            read_tables(connection, publication)
            _check_published(connection, publication)


def _check_published(connection: psycopg.Connection[tuple[Any, ...]], publication: str) -> None:
    """Refuse a publication that leaves changes out: its tables would stay as they never were."""
    row = connection.execute(_PUBLISHED, (publication,)).fetchone()
    every_kind, rooted = row or (True, None)
    name = identifier(publication)
    if not every_kind:
        raise ConfigError(
            f'publication "{publication}" does not publish every kind of change',
            hint=f"Run upstream: ALTER PUBLICATION {name} SET"
            " (publish = 'insert, update, delete, truncate');",
        )
    if rooted is not None:
        raise ConfigError(
            f'publication "{publication}" publishes table {rooted} in place of its partitions',
            detail="Upstream's log then leaves out partitions that are truncated, attached or"
            " detached.",
            hint=f"Run upstream: ALTER PUBLICATION {name} SET (publish_via_partition_root = false);"
            " each partition is a table of the source then.",
        )


async def validate(url: str) -> None:
    """VALIDATE CONNECTION: whether sources can be made on it."""
    try:
        await ask("statement", "on PostgreSQL", partial(check, url))
    except SourceError as error:
        raise ConfigError(error.message) from error


def drop_slot_now(url: str, slot: str) -> None:
    """Drop a slot, and end whoever reads it; blocks. Idempotent."""
    with session(url) as connection:
        for _ in range(_DROP_TRIES):
            try:
                connection.execute(_END, (slot,))
                connection.execute(_DROP, (slot,))
            except psycopg.errors.ObjectInUse:
                threading.Event().wait(_DROP_PAUSE_S)
                continue
            return
        raise SourceStalled(f'replication slot "{slot}" is in use')


def drop_slot_later(url: str, slot: str) -> None:
    """Drop a slot as soon as upstream answers again, or give it up after a while; blocks."""
    for _ in range(_LATER_TRIES):
        try:
            drop_slot_now(url, slot)
        except NoonmarkError as error:
            why = error.message
        else:
            LOG.info('replication slot "%s" was dropped upstream', slot)
            return
        threading.Event().wait(_LATER_PAUSE_S)
    LOG.warning('replication slot "%s" stays upstream, and keeps the log there: %s', slot, why)
