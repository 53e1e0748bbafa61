"""Tables: writes of many sessions, committed together at one time.

One committer takes everything that waits: writes, and wishes that tables become complete up to a
time. It asks the oracle for one time t, puts every write at t, seals the tables that were written
(and those that share a view with them) past t, all in one commit of persist, and then tells the
oracle that t is durable. Only then is anybody answered.

Law (acknowledged): when `commit` returned t, every `read_ts` from then on is at least t, and the
rows are durable.
Law (no lost update): a commit with `read_at` is refused with `SerializationFailure` when one of the
tables that it was computed from was written after `read_at`: what was read is still true at t.
Law (key): no table with a key ever has two rows of one key; a write that would make them is refused
by itself, and those beside it go on.
Law (constraints): see `enforce`. Rows that were computed before a CHECK or NOT NULL was added are
refused with `SerializationFailure`.
Law (alone): a request that cannot be committed, for whatever reason of its own, fails alone: where
requests cannot be drafted or are refused together, each is tried by itself.
Law (nobody waits for the dead): when the committer dies, whatever it held is told so; what waits
behind that is committed by its next life.
Law (order): times of commits grow in the order in which they are applied.
Law (columns): a row that was computed under an older schema has NULL in the columns added since, as
have the rows that were stored then; so writes from before and after ADD COLUMN go together.
Law (names): a name means the collection that it meant when the rows were computed; a commit is
refused with `SerializationFailure` where it means another by now.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.peek.mirrors import Mirrors
from noonmark.adapter.table.constraints import key_name
from noonmark.adapter.table.enforce import Constraints, Group, Trial
from noonmark.adapter.table.keys import ROW_WEIGHT, Keys
from noonmark.adapter.table.lookups import Stored
from noonmark.adapter.table.requests import (
    Advance,
    Beside,
    Change,
    Draft,
    Encoded,
    NotDrafted,
    Request,
    Try,
    Write,
    moved,
    none_before,
    refuse,
    refuse_all,
    resolve,
    updates_at,
    written,
)
from noonmark.adapter.table.tries import tried
from noonmark.adapter.timestamp.oracle import Times
from noonmark.adapter.worker.pool import Pool
from noonmark.errors import (
    NoonmarkError,
    SerializationFailure,
    Stopped,
    UndefinedTable,
    UnknownCollection,
    UsageError,
)
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.rows.arrow import to_table
from noonmark.storage.transaction import Transaction, own_capability
from noonmark.supervise import Supervisor, Task
from noonmark.tvc import Antichain

#: Since moves in steps, so that a commit rarely carries it.
_SINCE_STEP_MS = 10_000


class Tables:
    """See the module."""

    def __init__(
        self,
        client: Client,
        times: Times,
        *,
        catalog: Callable[[], Catalog],
        names: Callable[[], Iterable[str]],
        together: Callable[[str], Iterable[str]],
        retain_ms: Callable[[str], int],
        mirrors: Callable[[], Mirrors],
        workers: Callable[[], Pool],
        supervisor: Supervisor,
    ) -> None:
        """Tables of one location.

        Args:
            client: the writer of the location.
            times: the oracle.
            catalog: the newest catalog.
            names: the collections of all tables.
            together: the tables that share a view with one.
            retain_ms: how much history a table keeps.
            mirrors: the tables that are in memory.
            workers: who computes what rows are told apart by.
            supervisor: sees the committer die, and begins it again.
        """
        self._client = client
        self._times = times
        self.catalog = catalog
        self._names = names
        self._stored = Stored(client, mirrors)
        self._constraints = Constraints(self._stored.columns, workers)
        self._together = together
        self._retain_ms = retain_ms
        self._waiting: list[Request] = []
        self._tries: list[Try] = []
        self._advances: list[Advance] = []
        #: What the committer has taken and not answered yet.
        self._held: list[Request | Advance | Try] = []
        self._wake = asyncio.Event()
        self._supervisor = supervisor
        self._task: Task | None = None
        self._written: dict[int, int] = {}  # when each was last written, by id: names move
        self._stopping = False
        self.commits = 0
        #: What must be durable before rows are: the numbers of sequences that they have.
        self.before_commit: Callable[[], Awaitable[None]] = none_before

    def start(self) -> None:
        """Begin to commit."""
        self._task = self._supervisor.task(
            "committer", "of tables", self._run, on_death=self._refuse_held
        )

    async def stop(self) -> None:
        """Commit what waits, refuse what comes after, and end."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task.ended()

    async def commit(
        self,
        writes: Mapping[str, Sequence[Write]],
        *,
        read_at: int | None = None,
        reads: Iterable[str] = (),
        ids: Mapping[str, int] | None = None,
        beside: Beside | None = None,
        change: Change | None = None,
        enforced: Mapping[str, Any] = MappingProxyType({}),
    ) -> int:
        """Write rows to tables, all or none, and return the time when it is durable.

        Args:
            writes: (row, diff) by collection.
            read_at: the time at which what is written was computed; None when it was computed from
                nothing.
            reads: the tables that it was computed from; those that are written, if none is named.
            ids: the collections that names meant when it was computed, where that was earlier.
            beside: adds more to the commit, which is then of this alone.
            change: the change of the catalog that goes with it.
            enforced: what the rows of tables were held to when they were computed (`enforced`).

        Raises:
            SerializationFailure: others wrote meanwhile; nothing happened; read again.
            UniqueViolation: a key would be there twice; nothing happened.
        """
        known = self._client.state.names
        for name, met in (ids or {}).items():
            if known.get(name) != met:
                raise moved(name)
        # Before it is queued: rows that do not fit are refused alone.
        some = [(name, rows, len(rows) * ROW_WEIGHT) for name, rows in writes.items() if rows]
        encoded = {name: await aside(size, self._encoded, name, rows) for name, rows, size in some}
        request = Request(
            writes, encoded, read_at, frozenset(reads), ids or {}, beside, change, enforced
        )
        return await self._asked(request)

    async def insert(
        self,
        name: str,
        data: pa.Table,
        *,
        read_at: int | None = None,
        reads: Iterable[str] = (),
        ids: Mapping[str, int] | None = None,
    ) -> int | None:
        """As `commit`, of rows as they are stored; None where only that can say what they do."""
        collection = self._table(name)
        if Group(self.catalog(), self._client.state).named(name) is not None:
            return None
        seen: dict[str, int] = {}
        if collection.key:
            known = self._known_at(collection)
            if known is None or not await self._stored.has_room(collection, data, known):
                return None
            seen[name] = known if read_at is None else min(known, read_at)
        whole = pa.concat_tables([to_table([], collection.schema), data], promote_options="default")
        encoded = {name: Encoded.inserted(collection.id, whole)}  # NULL in columns added since
        request = Request({name: ()}, encoded, read_at, frozenset(reads), ids or {}, seen=seen)
        try:
            return await self._asked(request)
        except SerializationFailure:
            return None  # somebody else wrote meanwhile

    def _known_at(self, collection: Collection) -> int | None:
        """A time at which it already is as it is now; nothing was ever in one without batches."""
        upper = None if collection.batches else collection.upper.only()
        return self.settled_at([collection.name]) if upper is None else upper - 1

    async def _asked(self, request: Request) -> int:
        self._check_open()
        await self.before_commit()
        self._waiting.append(request)
        self._wake.set()
        # Once it is queued it happens: a cancelled caller only does not learn when.
        return await asyncio.shield(request.done)

    async def try_out(self, attempt: Try) -> Any:
        """Tell a transaction whether its rows could be written now; see `tries`."""
        self._check_open()
        self._tries.append(attempt)
        self._wake.set()
        return await asyncio.shield(attempt.done)

    async def advance(self, time: int, names: Iterable[str] | None = None) -> None:
        """Make tables complete at `time`, all of them or those; at once where they are already."""
        wanted = frozenset(self._names() if names is None else names)
        if self.complete_at(time, wanted):
            return
        advance = Advance(time, wanted)
        self._check_open()
        self._advances.append(advance)
        self._wake.set()
        await asyncio.shield(advance.done)

    def _check_open(self) -> None:
        if self._stopping:
            raise Stopped("the database is closing", hint="Connect again later.")

    def _encoded(self, name: str, writes: Sequence[Write]) -> Encoded:
        collection = self._table(name)
        fill = collection.schema.fill
        data = to_table([fill(row) for row, _ in writes], collection.schema)
        return Encoded.of(collection.id, data, writes)

    def _table(self, name: str) -> Collection:
        state = self._client.state
        if name not in state.names:
            raise UndefinedTable(f'relation "{name}" does not exist')
        return state.collection(name)

    def ids(self, names: Iterable[str]) -> dict[str, int]:
        """The collections that names mean now."""
        known = self._client.state.names
        return {name: known[name] for name in names if name in known}

    def settled_at(self, names: Iterable[str]) -> int | None:
        """A time at which these tables already are as they are now; None where there is none.

        For who computes a write from them: the commit's check of `read_at` says whether they still
        are, so there is no need to make them complete at a newer time first.
        """
        state = self._client.state
        found = [state.collections[state.names[name]] for name in names if name in state.names]
        uppers = [upper for each in found if (upper := each.upper.only()) is not None]
        if not found or len(uppers) != len(found):
            return None
        time = min(uppers) - 1
        known = all(each.since.less_equal(time) for each in found)
        settled = all(self._written.get(each.id, 0) <= time for each in found)
        return time if known and settled else None

    def complete_at(self, time: int, names: Iterable[str]) -> bool:
        """Whether none of these tables can change at `time` any more."""
        state = self._client.state
        return all(
            not state.collections[state.names[name]].upper.less_equal(time)
            for name in names
            if name in state.names
        )

    # -- the committer ---------------------------------------------------------------------------

    async def _run(self) -> None:
        self._wake.set()  # what came before this life
        while not (self._stopping and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            group, self._waiting = self._waiting, []
            advances, self._advances = self._advances, []
            tries, self._tries = self._tries, []
            self._held = [*group, *advances, *tries]
            for attempt in tries:
                await self._try_out(attempt)
            together = [request for request in group if request.beside is None]
            if together or advances:
                await self._try(together, advances)
            for request in group:
                if request.beside is not None:
                    await self._try([request], [])
            self._held = []
        unanswered = [*(a.done for a in self._advances), *(t.done for t in self._tries)]
        for each in unanswered:
            each.cancel()

    async def _try_out(self, attempt: Try) -> None:
        try:
            await self._client.settle()
            group = self._group(attempt.change)
            resolve(attempt.done, await tried(group, self._stored, self._constraints, attempt))
        except Exception as error:
            refuse_all([attempt], [], error)

    def _refuse_held(self, error: NoonmarkError) -> None:
        held, self._held = self._held, []
        for each in held:
            refuse(each.done, error)

    async def _try(self, group: list[Request], advances: list[Advance]) -> None:
        """Commit, or tell everybody why not: those alone who are the reason."""
        try:
            # What a lost answer left in doubt is known before anything is drafted.
            await self._client.settle()
            draft = await self._draft(group, advances)
            if draft is not None:
                await self._commit(draft)
        except UnknownCollection:
            # One was dropped between looking and committing: nothing happened, look again.
            self._waiting, self._advances = group + self._waiting, advances + self._advances
            self._wake.set()
        except (UsageError, NotDrafted) as error:
            # Nothing happened, so each may be tried again.
            if len(group) + len(advances) > 1:
                for request in group:
                    await self._try([request], [])
                for advance in advances:
                    await self._try([], [advance])
            else:
                refuse_all(group, advances, error)
        except Exception as error:
            # It may have happened.
            refuse_all(group, advances, error)

    async def _draft(self, group: list[Request], advances: list[Advance]) -> Draft | None:
        """What to commit, at a fresh time; None where nothing is left to be done.

        Raises:
            NotDrafted: some of it cannot even be put together.
        """
        try:
            accepted, totals, happened = await self._accept(group)
            if not accepted and not advances:
                return None
            time = await self._times.write_ts()
            sealed = {each for name in totals for each in (name, *self._together(name))}
            sealed |= {name for advance in advances for name in advance.names}
            transaction = Transaction(self._client)
            state = self._client.state
            for name in sorted(sealed & state.names.keys()):
                own = own_capability(state, name)
                if name in totals:
                    updates = updates_at(time, totals[name])
                    transaction.update_and_downgrade(own, updates, time + 1)
                elif own.frontier.less_equal(time):
                    transaction.update_and_downgrade(own, None, time + 1)
                horizon = Antichain.of(max(0, time - self._retain_ms(name)))
                transaction.let_history_go(state.names[name], horizon, _SINCE_STEP_MS)
            for request in accepted:
                if request.beside is not None:
                    request.beside(transaction, time)
            written = frozenset(part.collection for parts in totals.values() for part in parts)
            return Draft(time, transaction, accepted, advances, written, happened)
        except UnknownCollection:
            raise
        except Exception as error:
            raise NotDrafted(error) from error

    async def _commit(self, draft: Draft) -> None:
        time = draft.time
        # Also if the answer is lost: then it may have happened.
        self._written.update(dict.fromkeys(draft.written, time))
        # A change of the catalog goes with it: what is stored has to be known.
        patient = any(request.beside is not None for request in draft.accepted)
        try:
            await draft.transaction.decide(patient=patient)
        except BaseException:
            self._constraints.forget(draft.written)
            raise
        draft.happened()
        for request in draft.accepted:
            if request.change is not None:
                request.change.became()
        self.commits += 1
        if draft.accepted:
            await self._times.apply_write(time)
        for request in draft.accepted:
            resolve(request.done, time)
        for advance in draft.advances:
            if advance.time <= time:
                resolve(advance.done, None)
            else:
                # The timeline is not there yet: tables stay writable until it is.
                self._later(advance, advance.time - time)

    def _later(self, advance: Advance, wait_ms: int) -> None:
        def again() -> None:
            self._advances.append(advance)
            self._wake.set()

        asyncio.get_running_loop().call_later(wait_ms / 1000, again)

    async def _accept(
        self, group: list[Request]
    ) -> tuple[list[Request], dict[str, list[Encoded]], Callable[[], None]]:
        """The requests that may happen, what they add up to by table, and what to do then."""
        group = [request for request in group if self._exists(request)]
        present = await self._stored.touched(group)
        own = next((each.change for each in group if each.change is not None), None)
        fresh = {} if own is None else own.fresh
        held = self._group(own)
        await self._constraints.prepare(held, {n for each in group for n in (*each.writes, *fresh)})
        trial = Trial()
        totals: dict[str, list[Encoded]] = {}
        accepted: list[Request] = []
        changed: set[str] = set()
        for request in group:
            try:
                self._check_read(request, changed)
                self._check_enforced(request)
                writes = {**request.writes, **fresh}
                weight = ROW_WEIGHT * sum(map(len, writes.values()))
                keys = await aside(weight, self._checked_keys, request, present)
                of = await self._constraints.computed(held, writes)
                tried = await aside(weight, self._constraints.check, held, writes, trial, of)
            except NoonmarkError as error:
                refuse(request.done, error)
                continue
            present |= keys
            trial.take(tried)
            accepted.append(request)
            for name, encoded in request.encoded.items():
                changed.add(name)
                totals.setdefault(name, []).append(encoded)
        return accepted, totals, partial(self._constraints.committed, held, trial)

    def _group(self, change: Change | None) -> Group:
        """What is enforced, of the catalog as it is or as it will be."""
        state, made = self._client.state, frozenset() if change is None else change.made
        return Group(self.catalog() if change is None else change.catalog, state, made)

    def enforced(self, name: str) -> Any:
        """What rows of a table are held to, beside its keys."""
        item = self.catalog().of_collection(name)
        if item is None:
            return None
        own = [item.definition.get(each) for each in ("checks", "not_null", "generated")]
        return [*own, [each.domain.state for each in item.schema if each.domain is not None]]

    def _check_enforced(self, request: Request) -> None:
        for name, met in request.enforced.items():
            if met != self.enforced(name):
                raise moved(name)

    def _exists(self, request: Request) -> bool:
        """Whether all its tables are there; tells who asks where one is not, or who has gone."""
        known = self._client.state.names
        for name, met in request.ids.items():
            if known.get(name) != met:
                refuse(request.done, moved(name))
        for name, encoded in request.encoded.items():
            if known.get(name) != encoded.collection:
                # Dropped, or made anew: who asks plans again, and learns which.
                refuse(request.done, UnknownCollection(f'relation "{name}" does not exist'))
        return not request.done.done()

    def _check_read(self, request: Request, changed: set[str]) -> None:
        known = self._client.state.names
        for name, time in request.seen_at():
            if name in changed or self._written.get(known.get(name, 0), 0) > time:
                raise written(name, time)

    def _checked_keys(self, request: Request, present: dict[str, Keys]) -> dict[str, Keys]:
        """The rows of the keys that the request touches, with it; all or nothing."""
        writes = [(name, each) for name, each in request.writes.items() if name in present]
        return {name: present[name].tried(each, self._key_name(name)) for name, each in writes}

    def _key_name(self, name: str) -> str:
        item = self.catalog().of_collection(name)
        return "" if item is None else key_name(item)
