"""Reading tables once more, or for the first time, beside those that go on.

A slot is made and its snapshot kept, as for a new source (`setup`). With a slot that is temporary,
the source's own one goes on: the tables are read under the snapshot, at c, and what the source's
slot has of them after c follows when they join the stream (`source`). With a slot that stays, the
source continues on that one: for when its own is gone, or stands in another history.

A table that is read again is described anew, and must fit the relation that stands here (`fitted`):
its columns are there with types whose values it holds; one that is gone upstream is NULL from now
on, if it may be; those that were added come behind, and may be NULL. What does not fit is refused,
in words that say how to go on.

Where it runs: driver; `fitted` is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import psycopg

from noonmark.errors import DatatypeMismatch, SourceStalled, Unsupported
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.source.contract import Split
from noonmark.source.impl.postgres.describe import Table, TableColumn, check_identity
from noonmark.source.impl.postgres.session import meaning
from noonmark.source.impl.postgres.setup import check, described, drop_slot_now
from noonmark.source.impl.postgres.snapshot import Held
from noonmark.source.impl.postgres.source import Postgres

_INTEGERS = (t.SmallInt, t.Integer, t.BigInt)
_TEXTS = (t.Text, t.Varchar, t.Char)


@dataclass(frozen=True)
class Relation:
    """What stands here for a table: its name in messages, its columns, and its key."""

    name: str
    schema: Schema
    key: tuple[str, ...]


@dataclass(frozen=True)
class Restaged:
    """Tables under a snapshot that is kept, to be read and then to join.

    Attributes:
        source: as it will be, with these tables as outputs of their own.
        outputs: their numbers, in the order in which they were asked for.
        notices: what their readers should know.
        held: the snapshot.
    """

    source: Postgres
    outputs: tuple[int, ...]
    notices: tuple[str, ...]
    held: Held
    _is_new_slot: bool = False

    def splits(self, output: int) -> list[Split]:
        """What to read of one of them."""
        return self.source.table_splits(output, self.held.name, self.held.position.offset)

    def close(self) -> None:
        """Let the snapshot go; the source's own slot stays."""
        self.held.close()

    def abandon(self) -> None:
        """Let everything go that was made for it."""
        self.held.close()
        if self._is_new_slot:
            drop_slot_now(self.source.url, self.source.slot)


def restage(
    source: Postgres,
    wanted: Sequence[tuple[tuple[str, str], Relation | None]],
    slot: str,
    *,
    new_slot: bool = False,
) -> Restaged:
    """Describe tables under a fresh snapshot, each for the relation that it is to fit.

    Args:
        source: as it is.
        wanted: the schema and name of each table, and what stands here; None for nothing yet.
        slot: what to call the slot.
        new_slot: whether the source is to go on with this one.

    Raises:
        ConfigError: upstream is not set up for it; the hint says what to run there.
        SourceStalled: it does not answer.
        Unsupported: a table does not fit its relation.
    """
    check(source.url, source.publication)
    held = Held.with_slot(source.url, slot, temporary=not new_slot)
    try:
        names = [name for name, _ in wanted]
        tables, system_id, timeline = described(source.url, source.publication, held, names)
        made, notices = [], []
        for table, (_, relation) in zip(tables, wanted, strict=True):
            check_identity(table)
            fit, told = (table, []) if relation is None else fitted(table, relation)
            made.append(replace(fit, from_lsn=held.position.lsn))
            notices += told
        first = len(source.tables)
        after = replace(source, tables=(*source.tables, *made))
        if new_slot:
            after = replace(
                after,
                slot=slot,
                start_lsn=held.position.lsn,
                system_id=system_id,
                timeline=timeline,
                generation=source.generation + 1,
            )
    except BaseException as error:
        held.close()
        if new_slot:
            drop_slot_now(source.url, slot)
        if isinstance(error, psycopg.Error):
            raise SourceStalled(meaning(error).message) from error
        raise
    outputs = tuple(range(first, first + len(made)))
    return Restaged(after, outputs, tuple(notices), held, new_slot)


def retired(source: Postgres, outputs: Iterable[int]) -> Postgres:
    """The source without some outputs, whose numbers stay taken."""
    gone = set(outputs)
    tables = (
        replace(table, retired=True) if at in gone else table
        for at, table in enumerate(source.tables)
    )
    return replace(source, tables=tuple(tables))


def fitted(table: Table, relation: Relation) -> tuple[Table, list[str]]:
    """The table as the relation can hold it, and what its readers should know."""
    there = {column.name: column for column in table.columns}
    columns, told = [], []
    for column in relation.schema:
        found = there.pop(column.name, None)
        if found is None:
            columns.append(_absent(relation, column))
            told.append(
                f'column "{column.name}" of "{relation.name}" is not there upstream: it is NULL'
            )
        else:
            _check_type(relation, column, found.sql_type)
            kept = t.stored_spelling(column.type)
            columns.append(replace(found, type=kept, nullable=column.nullable))
    for added in there.values():
        columns.append(replace(added, nullable=True))
        told.append(f'column "{added.name}" of "{relation.name}" is new')
    key = table.key
    if table.full:
        key = relation.key  # the log has whole rows: a key here only sorts them
    elif key != relation.key:
        raise Unsupported(
            f'the key of table {table.full_name} is not that of "{relation.name}" any more',
            detail=f"It is ({', '.join(key)}), and here ({', '.join(relation.key)}).",
            hint=f"Run upstream: ALTER TABLE {table.sql_name} REPLICA IDENTITY FULL; or drop the "
            "table from the source and add it again.",
        )
    return replace(table, columns=tuple(columns), key=key), told


def _absent(relation: Relation, column: Column) -> TableColumn:
    if not column.nullable or column.name in relation.key:
        raise Unsupported(
            f'column "{column.name}" of "{relation.name}" is gone upstream, and never NULL here',
            hint="Make it again upstream, or drop the table from the source and add it again.",
        )
    return TableColumn(column.name, 0, 0, 0, t.stored_spelling(column.type))


def _check_type(relation: Relation, column: Column, now: t.SqlType) -> None:
    """Whether every value of a type upstream is one of the column's, or is an error row."""
    here = column.type
    if now == here or isinstance(here, t.Text):
        return
    if isinstance(now, _INTEGERS) and isinstance(here, _INTEGERS):
        return
    if isinstance(now, _TEXTS) and isinstance(here, _TEXTS):
        return
    if isinstance(now, t.Numeric) and isinstance(here, t.Numeric):
        return
    raise DatatypeMismatch(
        f'column "{column.name}" of "{relation.name}" is of type {now} upstream, and {here} here',
        hint="Give it its type back upstream, or drop the table from the source and add it again.",
    )
