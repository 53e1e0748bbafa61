"""Transactions: reads at one time, writes at one time.

The first read chooses the transaction's time, and holds every collection that is readable there:
all later reads of it are at that time, of whatever relation. What it writes is kept here until
COMMIT, which puts all of it into one commit, at one later time, over any number of tables.

Law (one time): all reads of a transaction are at one time, chosen by the isolation that it had.
Law (all or nothing): none of its writes is anywhere before COMMIT; then all are, or none is.

Law (still true): when a transaction that reads and writes commits, the tables that it read are
unchanged since the time of its reads; else COMMIT is refused with `SerializationFailure`, and
nothing happened. So it is as if all of it had happened at the time of the commit.

Only for tables, and views of tables alone, can it be known that they are unchanged. A transaction
that read a source cannot write.

What it changes in the catalog waits for COMMIT with the rows (`adapter.session.commit`).

A group of statements that were sent as one is an implicit transaction, by the same laws. Only where
an explicit one would be refused, because no transaction can do both things, the group is committed
up to there, and goes on as another one (`end_group`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import to_its_end
from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.staging import Staging
from noonmark.adapter.session.commit import commit_staged
from noonmark.adapter.session.holds import Held
from noonmark.adapter.session.memory import rows_bytes
from noonmark.adapter.session.recorded import without_rows
from noonmark.adapter.table.constraints import Deferral, is_constrained
from noonmark.adapter.table.inserted import InsertedRows
from noonmark.adapter.table.requests import Change, Try
from noonmark.adapter.timestamp.choice import ISOLATION, STRICT
from noonmark.errors import NoonmarkError, ReadOnly, UnknownSavepoint

if TYPE_CHECKING:
    from noonmark.adapter.session.channels import Announcement
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]
Writes = Mapping[str, Sequence[tuple[Row, int]]]


@dataclass(frozen=True)
class _Savepoint:
    """What was written and staged when it was made: each table's rows, and how many there were."""

    name: str
    writes: Mapping[str, tuple[Sequence[tuple[Row, int]], int]]
    catalog: Catalog | None
    constraints: Deferral
    said: int
    size: int
    written: int


#: What a savepoint takes, and each table in it.
_SAVEPOINT_BYTES, _TABLE_BYTES = 500, 200
#: Rows that are weighed on the loop.
_WEIGHED_HERE = 2_000


class OpenTransaction:
    """See the module; `session.Transaction`."""

    def __init__(
        self, session: AdapterSession, isolation: str, *, implicit: bool, read_only: bool = False
    ) -> None:
        self.failed = False
        self.implicit = implicit
        self.isolation = isolation
        self.read_only = read_only
        #: The session's settings when it began, and what those were that it set for itself alone.
        self.settings: dict[str, str] | None = None
        self.local_settings: dict[str, str | None] = {}
        self._session, self._database = session, session.database
        self._held: Held | None = None
        self._writes: dict[str, list[tuple[Row, int]] | InsertedRows] = {}
        #: The time at which what it writes was computed, and the tables it was computed from.
        self.read_at: int | None = None
        self._reads: set[str] = set()
        self._read_tables: set[str] = set()
        #: The collections that names meant when they were read or written.
        self._ids: dict[str, int] = {}
        #: What the rows that it wrote were held to.
        self._enforced: dict[str, Any] = {}
        #: What it wrote, counted by keys, of that catalog; None where it must be counted again.
        self._tried: tuple[Catalog, Any] | None = None
        self.constraints = Deferral()
        self._unchecked: str | None = None
        #: Savepoints: a name, and how many rows each table had waiting.
        self._saved: list[_Savepoint] = []
        #: What is announced at COMMIT.
        self.said: list[Announcement] = []
        #: What its changes take, as the session's account has it.
        self._written_bytes = 0
        #: The catalog with its own changes; None before the first.
        self.staging: Staging | None = None

    @property
    def time(self) -> int | None:
        """The time of its reads; None before the first."""
        return self.read_at if self._held is None else self._held.time

    @property
    def is_writing(self) -> bool:
        """Whether something waits for COMMIT."""
        return bool(self._writes) or (self.staging is not None and self.staging.has_changed)

    def stage(self) -> Staging:
        """Where a statement changes the catalog.

        Raises:
            ReadOnly: see `before_write`.
        """
        self.before_write()
        if self.staging is None:
            self.staging = Staging(self._database.catalog)
        return self.staging

    @property
    def fresh(self) -> frozenset[str]:
        """The collections that it made itself: nothing of them is stored yet."""
        return frozenset() if self.staging is None else self.staging.fresh()

    def forget(self, collections: Iterable[str]) -> None:
        """Tables were dropped: what waits for them never happens."""
        self._writes = {k: rows for k, rows in self._writes.items() if k not in set(collections)}

    def note_read(self, tables: Iterable[str], unchecked: str | None) -> None:
        """A statement reads tables; `unchecked` is what it reads that may change unseen.

        Raises:
            ReadOnly: it reads what cannot be checked, and the transaction has written.
        """
        if unchecked is not None and self.is_writing:
            raise ReadOnly(
                f'this transaction writes, and cannot read "{unchecked}"',
                detail="It may have changed by the time of the write, and nobody would know.",
                hint="Read sources, and views of them, before BEGIN or after COMMIT.",
            )
        tables = set(tables)
        self._read_tables |= tables
        self._meet(tables)
        self._unchecked = self._unchecked or unchecked

    def hold(self, held: Held) -> None:
        """The first read chose its time: everything is read there from now on."""
        assert self._held is None, "a transaction reads at one time"
        self._held = held

    def readable(self, collection: int) -> bool:
        """Whether the transaction's holds keep a collection readable at its time."""
        return self._held is not None and collection in self._held.collections

    def before_write(self) -> None:
        """Called before a statement that writes.

        Raises:
            ReadOnly: the transaction said READ ONLY, or has read what cannot be checked.
        """
        if self.read_only:
            raise ReadOnly("cannot write in a read-only transaction")
        if self._unchecked is not None:
            raise ReadOnly(
                f'this transaction read "{self._unchecked}", and cannot write',
                detail="It may have changed by the time of the write, and nobody would know.",
                hint="Read sources, and views of them, before BEGIN or after COMMIT.",
            )

    @property
    def read_unchecked(self) -> bool:
        """Whether it has read what may change unseen."""
        return self._unchecked is not None

    @property
    def pending(self) -> Writes:
        """What waits for COMMIT: the transaction's own statements see it."""
        return self._writes

    async def write(
        self, writes: Writes, read_at: int | None = None, reads: Iterable[str] = ()
    ) -> None:
        """Keep rows for COMMIT, which is refused if `reads` change after `read_at`.

        Raises:
            UniqueViolation, ForeignKeyViolation: COMMIT would refuse them.
        """
        self.before_write()
        self.grow(await weighed(writes))
        if any(writes.values()):
            await self._try_out(writes, self._writes)
        self._meet((*writes, *reads))
        if read_at is not None:
            assert self.read_at in (None, read_at), "a transaction reads at one time"
            self.read_at = read_at
            self._reads.update(reads)
        for name, rows in writes.items():
            self._enforced.setdefault(name, self._database.tables.enforced(name))
            if name not in self._writes and isinstance(rows, InsertedRows):
                self._writes[name] = rows
            else:
                self._writes.setdefault(name, []).extend(rows)

    def grow(self, size: int) -> None:
        """What it has written takes so much more.

        Raises:
            OutOfMemory: its session may keep no more.
        """
        self._session.account.take("changes", size, 0)
        self._written_bytes += size

    async def _try_out(self, writes: Writes, before: Writes, *, again: bool = False) -> None:
        staging, tables = self.staging, self._database.tables
        catalog = self._database.catalog if staging is None else staging.catalog
        if not any(is_constrained(catalog, name) for name in writes):
            return
        change = None
        if staging is not None and staging.has_changed:
            change = Change(catalog, {}, staging.fresh(), lambda: None)
        known = self._tried
        pending = known[1] if known is not None and known[0] is catalog and not again else None
        self._tried = None  # unless all goes well
        waits = self.constraints.waits
        made = await tables.try_out(Try(writes, before, pending, change, waits))
        self._tried = catalog, made

    async def set_constraints(self, deferral: Deferral) -> None:
        """SET CONSTRAINTS: what was deferred and is not any more is checked now.

        Raises:
            ForeignKeyViolation: it does not hold; it is deferred as before.
        """
        before, self.constraints = self.constraints, deferral
        if self._writes:
            try:
                await self._try_out(self._writes, {}, again=True)
            except BaseException:
                self.constraints = before
                raise

    def _meet(self, names: Iterable[str]) -> None:
        """Remember what names mean: what the transaction does is of these collections alone."""
        for name, met in self._database.tables.ids(names).items():
            self._ids.setdefault(name, met)

    def save(self, name: str) -> None:
        """SAVEPOINT: what is written so far can be gone back to."""
        writes = {each: (rows, len(rows)) for each, rows in self._writes.items()}
        catalog = None if self.staging is None else self.staging.catalog
        size = _SAVEPOINT_BYTES + len(name) + _TABLE_BYTES * len(writes)
        self._session.account.take("savepoints", size)
        self._saved.append(
            _Savepoint(
                name,
                writes,
                catalog,
                self.constraints,
                len(self.said),
                size=size,
                written=self._written_bytes,
            )
        )

    def release(self, name: str) -> None:
        """Forget a savepoint, and those after it; their writes stay."""
        self._forget_saved(self._savepoint(name))

    def _forget_saved(self, start: int) -> None:
        for each in self._saved[start:]:
            self._session.account.free("savepoints", each.size)
        del self._saved[start:]

    def back_to(self, name: str) -> None:
        """Undo what was written after a savepoint, and the failure of the transaction."""
        at = self._savepoint(name)
        self._forget_saved(at + 1)
        kept = self._saved[at]
        before = sum(len(rows) for rows in self._writes.values())
        self._writes = {each: list(rows[:count]) for each, (rows, count) in kept.writes.items()}
        after = sum(map(len, self._writes.values()))
        # What is left was counted, and may have become rows since: at least its share of all.
        left = max(kept.written, self._written_bytes * after // max(1, before))
        self._session.account.free("changes", self._written_bytes - left, 0)
        self._written_bytes = left
        for said in self.said[kept.said :]:
            self._session.account.free("notifications", said.bytes)
        del self.said[kept.said :]
        if self.staging is not None:
            self.staging.catalog = kept.catalog or self.staging.base
        self.constraints, self._tried, self.failed = kept.constraints, None, False

    def _savepoint(self, name: str) -> int:
        for at in range(len(self._saved) - 1, -1, -1):
            if self._saved[at].name == name:
                return at
        raise UnknownSavepoint(f'savepoint "{name}" does not exist')

    async def commit(self) -> None:
        """Make everything durable at one time, and let go of the holds."""
        writes, self._writes = self._writes, {}
        read_at, self.read_at = self.read_at, None
        reads, self._reads = self._reads | self._read_tables, set()
        staging, self.staging = self.staging, None
        names = reads | writes.keys()
        ids = {name: met for name, met in self._ids.items() if name in names}
        if self._held is not None:
            read_at = self._held.time
        read_at = read_at if reads else None
        try:
            if staging is not None and staging.has_changed:
                writes = self._without_dropped(staging, writes)

                await to_its_end(
                    commit_staged(
                        self._database,
                        staging,
                        writes=writes,
                        read_at=read_at,
                        reads=reads,
                        ids=ids,
                        enforced=self._enforced,
                    )
                )
            elif writes:
                await self._database.tables.commit(
                    writes, read_at=read_at, reads=reads, ids=ids, enforced=self._enforced
                )
            self._database.channels.announce(self._session, self.said)
            self._database.numbers.end(self._session.id, committed=True)
        except NoonmarkError as error:
            raise without_rows(self._session, error) from None
        finally:
            await self._let_go()

    @staticmethod
    def _without_dropped(staging: Staging, writes: dict[str, Any]) -> dict[str, Any]:
        """Let go of tables that are ON COMMIT DROP, and of what was written to them."""
        going = [item for item in staging.new() if item.definition.get("on_commit") == "drop"]
        above = staging.catalog.dependents([item.number for item in going])
        numbers = [item.number for item in (*going, *above)]
        staging.catalog = staging.catalog.changed(removed=numbers)
        names = {item.collection for item in going}
        return {name: rows for name, rows in writes.items() if name not in names}

    async def rollback(self) -> None:
        """Forget the writes and let go of the holds."""
        self._writes, self.read_at, self.staging = {}, None, None
        await self._let_go()

    async def _let_go(self) -> None:
        account = self._session.account
        account.free("changes", self._written_bytes, 0)
        self._written_bytes = 0
        self._forget_saved(0)
        for said in self.said:
            account.free("notifications", said.bytes)
        self.said.clear()
        self._database.locks.release_all(self._session, transaction=True)
        self._database.numbers.end(self._session.id, committed=False)  # unless it has
        held, self._held = self._held, None
        if held is not None:
            await self._database.reads.holds.release(held)


async def weighed(writes: Writes) -> int:
    """About what rows take that wait to be written."""
    size, rows = 0, []
    for written in writes.values():
        if isinstance(written, InsertedRows) and written.table is not None:
            size += written.table.nbytes
        else:
            rows += [row for row, _ in written]
    if len(rows) <= _WEIGHED_HERE:
        return size + rows_bytes(rows)
    return size + await asyncio.to_thread(rows_bytes, rows)


def current(session: AdapterSession) -> OpenTransaction | None:
    """The session's transaction; made where statements that were sent as one have none yet."""
    if session.transaction is None and session.grouped:
        session.transaction = OpenTransaction(session, isolation_of(session), implicit=True)
    transaction = session.transaction
    assert transaction is None or isinstance(transaction, OpenTransaction)
    return transaction


async def end_group(session: AdapterSession) -> None:
    """Commit what statements that were sent as one did so far; the next begins another group."""
    transaction = current(session)
    assert transaction is not None, "a group is open"
    assert transaction.implicit, "only a group goes on by itself"
    session.transaction = None
    await transaction.commit()


async def reading(
    session: AdapterSession, tables: Iterable[str], unchecked: str | None
) -> OpenTransaction | None:
    """The transaction of a statement that reads these tables; see `note_read`."""
    transaction = current(session)
    if transaction is None:
        return None
    if transaction.implicit and transaction.is_writing and unchecked is not None:
        await end_group(session)
        return await reading(session, tables, unchecked)
    transaction.note_read(tables, unchecked)
    return transaction


async def writing(session: AdapterSession) -> OpenTransaction | None:
    """The transaction of a statement that writes; see `before_write`."""
    transaction = current(session)
    if transaction is None:
        return None
    if transaction.implicit and transaction.read_unchecked:
        await end_group(session)
        return await writing(session)
    transaction.before_write()
    return transaction


def isolation_of(session: AdapterSession) -> str:
    """The isolation that the session asked for, as `timestamp` knows it."""
    asked = session.variables.get("transaction_isolation", STRICT)
    return ISOLATION.get(asked.lower(), STRICT)


def domain(session: AdapterSession, names: Iterable[str], time: int) -> list[str]:
    """What a transaction may read: every collection that is readable at its time."""
    state = session.database.client.state
    readable = [
        name
        for name in _stored(session)
        if name in state.names and state.collection(name).since.less_equal(time)
    ]
    return list(dict.fromkeys([*names, *readable]))


def _stored(session: AdapterSession) -> list[str]:
    """The collections of all items; looked up once per catalog."""
    catalog = session.catalog
    kept = session.plans.get(_stored)
    if kept is None or kept[0] is not catalog:
        names = [item.collection for item in catalog.items() if item.is_stored]
        kept = catalog, names
        session.plans.keep(_stored, kept, 100 * len(names))
    found: list[str] = kept[1]
    return found
