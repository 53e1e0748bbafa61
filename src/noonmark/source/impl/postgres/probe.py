"""Asking upstream how far it is, and whether it still is what the source was made on.

Law (definite): what `look` and `probe` report as ended is so for good: a slot that is gone or has
lost its log does not come back, and neither does another history or a column.

Where it runs: driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from noonmark.errors import ConfigError, SourceStalled
from noonmark.source.impl.postgres import partitions
from noonmark.source.impl.postgres.describe import added_columns, changed, read_tables
from noonmark.source.impl.postgres.position import exact_position, of_bound
from noonmark.tvc import Partition

if TYPE_CHECKING:
    from noonmark.source.impl.postgres.source import Postgres

_STATE = """
select (select system_identifier from pg_control_system()),
       pg_is_in_recovery(),
       s.slot_name is not null,
       coalesce(s.wal_status = 'lost', false),
       (s.confirmed_flush_lsn - '0/0'::pg_lsn)::bigint,
       (select pubinsert and pubupdate and pubdelete and pubtruncate
        from pg_publication where pubname = %(publication)s)
from (select 1) one
left join pg_replication_slots s on s.slot_name = %(slot)s and s.database = current_database()
"""
_HISTORY = """
select (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
"""
_EXISTING = "select oid::bigint from pg_class where oid = any(%s::oid[])"


class Doom(IntEnum):
    """What ends a source for good. The numbers are stored: they never change."""

    SLOT_DROPPED = 1
    SLOT_LOST = 2
    SLOT_MOVED = 3
    OTHER_SYSTEM = 4
    OTHER_TIMELINE = 5
    PUBLICATION_DROPPED = 6
    WENT_BACK = 7
    PUBLICATION_NARROWED = 8

    def explain(self, slot: str, publication: str) -> str:
        """The sentence that readers of the errors see."""
        return {
            Doom.SLOT_DROPPED: f'replication slot "{slot}" was dropped upstream',
            Doom.SLOT_LOST: f'replication slot "{slot}" was invalidated: its log was removed',
            Doom.SLOT_MOVED: f'replication slot "{slot}" was moved or made again by somebody else',
            Doom.OTHER_SYSTEM: "upstream is another database cluster",
            Doom.OTHER_TIMELINE: "upstream is on another timeline: a standby was promoted, or a "
            "backup restored",
            Doom.PUBLICATION_DROPPED: f'publication "{publication}" was dropped upstream',
            Doom.WENT_BACK: "upstream went back to an earlier state",
            Doom.PUBLICATION_NARROWED: f'publication "{publication}" leaves changes out that it '
            "published before",
        }[self]


def look(connection: Any, source: Postgres, known: dict[Partition, int]) -> Doom | None:
    """What has ended the source as a whole, if anything has."""
    values = {"slot": source.slot, "publication": source.publication}
    system, standby, there, lost, confirmed, published = connection.execute(
        _STATE, values
    ).fetchone()
    if system != source.system_id:
        return Doom.OTHER_SYSTEM
    if standby:
        raise SourceStalled("upstream is a standby: connect to the primary")
    flushed, timeline = connection.execute(_HISTORY).fetchone()
    if timeline != source.timeline:
        return Doom.OTHER_TIMELINE
    if not there:
        return Doom.SLOT_DROPPED
    if lost:
        return Doom.SLOT_LOST
    bound = known.get(source.log, 0)
    if confirmed is None or confirmed > max(of_bound(bound).lsn, source.start_lsn):
        return Doom.SLOT_MOVED
    if flushed < of_bound(bound).lsn:
        return Doom.WENT_BACK
    if published is None:
        return Doom.PUBLICATION_DROPPED
    return None if published else Doom.PUBLICATION_NARROWED


@dataclass(frozen=True)
class Probed:
    """What upstream said: offsets to bind, and columns that it has and that are not read."""

    offsets: dict[Partition, int]
    added: dict[int, tuple[str, ...]]


def probe(connection: Any, source: Postgres, known: dict[Partition, int]) -> Probed:
    """Up to where the log is exact, which tables have ended, and which have joined.

    The position first: whatever befell a table below it is seen in the catalogs after it.
    """
    end = exact_position(connection)
    try:
        now = {table.oid: table for table in read_tables(connection, source.publication)}
    except ConfigError as error:  # it went a moment ago, for good or to come back: look again
        raise SourceStalled(error.message) from error
    read = {at: table for at, table in enumerate(source.tables) if not table.retired}
    oids = [table.oid for table in read.values()]
    existing = {row[0] for row in connection.execute(_EXISTING, (oids,)).fetchall()}
    found: dict[Partition, int] = dict(known)
    added: dict[int, tuple[str, ...]] = {}
    for number, table in read.items():
        fate = changed(table, now.get(table.oid), table.oid in existing)
        if fate is not None:
            found.setdefault(partitions.fate(number), int(fate))
        elif more := added_columns(table, now[table.oid]):
            added[number] = more
        if table.from_lsn is not None:
            found[partitions.joined(number)] = 1
    found[source.log] = max(end.offset, known.get(source.log, 0), source.start.offset)
    return Probed(found, added)
