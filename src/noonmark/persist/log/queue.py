"""The order of writes: called first, applied first; what waits together commits together.

Every mutation is an operation in one queue. An operation that has parts to write prepares them at
once and beside others; it is committed in its turn. While one entry is being made durable, the
operations behind it gather, and the next entry takes all of them that are prepared (group
commit).

Guarantee (ordering): if `submit(a)` returned before `submit(b)` was called, a is applied before
b, whether or not a's future had resolved. Each operation is atomic. One that fails changes nothing
(or, when it is in doubt, nobody knows) and takes those with it that were called before its failure
was told and rely on it (`dependence`); it does not hold back the others.

In doubt. After an `Indeterminate` commit its entry may be in the log, or come there late; whatever
this process knows of the collections may be old. The next entry that is put decides it, because it
takes that number. `in_doubt` is True until then, and `settle` puts an empty one.

Defects. An exception that nobody foresaw fails the one transaction that met it, with the number of
a line of the log. Where it is not known whose it is, the writing itself dies (`supervise`): what
was being committed fails and is in doubt, what is queued behind goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from noonmark import defect
from noonmark.errors import Indeterminate, InternalError, NoonmarkError, WriterError
from noonmark.persist.log.command import Transaction
from noonmark.persist.log.dependence import NOTHING, Dependence, behind, dependence
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import State
from noonmark.persist.runtime import Runtime, stopped
from noonmark.supervise import Supervisor

#: Operations in one entry; bounds the size of an entry together with `Config.inline_bytes_max`.
GROUP_MAX = 256

Prepare = Callable[[], Coroutine[Any, Any, Transaction]]


@dataclass
class Operation:
    """One call: its transaction, or how to prepare it, and the future that its caller holds."""

    transaction: Transaction | Prepare
    dependence: Dependence = NOTHING
    future: Future[State] = field(default_factory=Future)
    prepared: asyncio.Task[Transaction] | None = None
    #: Set when one that it relies on failed.
    doomed: NoonmarkError | None = None


Failures = list[tuple[Operation, BaseException]]


class WriteQueue:
    """See the module. `submit` may be called from any thread; the rest runs on the loop."""

    def __init__(
        self, runtime: Runtime, journal: Journal, epoch: int, supervisor: Supervisor
    ) -> None:
        self.runtime = runtime
        self.journal = journal
        self.epoch = epoch
        self.committed = 0
        self.in_doubt = False
        self._mutex = threading.Lock()
        self._pending: deque[Operation] = deque()
        #: What is being committed.
        self._group: list[tuple[Operation, Transaction]] = []
        #: What failed, while its callers are being told.
        self._failing: Failures = []
        self._wake = asyncio.Event()
        self._closed: NoonmarkError | None = None
        self._task = supervisor.task("log writer", "", self._run, on_death=self._died)

    def submit(
        self, transaction: Transaction | Prepare, own: Dependence | None = None
    ) -> Future[State]:
        """Queue a transaction; the future resolves to the state that made it durable.

        Args:
            transaction: the commands, or what prepares them.
            own: what it changes and relies on; must be said of commands that are not known yet.
        """
        if own is None:
            own = NOTHING if callable(transaction) else dependence(transaction)
        operation = Operation(transaction, own)
        operation.future.set_running_or_notify_cancel()  # once queued it cannot be taken back
        with self._mutex:
            if self._closed is not None:
                operation.future.set_exception(self._closed)
                return operation.future
            for failed, error in self._failing:
                _doom(operation, failed, error)
            self._pending.append(operation)
            # Inside: after `refuse` the loop may end, and then takes no more calls.
            self.runtime.loop.call_soon_threadsafe(self._accept, operation)
        return operation.future

    def _accept(self, operation: Operation) -> None:
        if callable(operation.transaction):
            operation.prepared = self.runtime.loop.create_task(operation.transaction())
        self._wake.set()

    async def drain(self) -> None:
        """Refuse new operations, finish those that are queued."""
        self.refuse(stopped())
        self._wake.set()
        await self._task.ended()

    def refuse(self, why: NoonmarkError) -> None:
        """Answer every later operation with this error."""
        with self._mutex:
            self._closed = self._closed or why

    @property
    def refusal(self) -> NoonmarkError | None:
        """What every later operation is answered with, if nothing is taken any more."""
        return self._closed

    async def settle(self) -> None:
        """Return when nothing is in doubt any more.

        Raises:
            StorageError: storage does not answer; it is not known yet.
        """
        while self.in_doubt:
            await asyncio.wrap_future(self.submit(()))

    def _fail(self, failed: Failures) -> None:
        """Tell callers of failures; who called before any of them was told, and relies, fails."""
        with self._mutex:
            self._failing = failed
            for operation, error in failed:
                for pending in self._pending:
                    _doom(pending, operation, error)
        for operation, error in failed:
            operation.future.set_exception(error)
        with self._mutex:
            self._failing = []

    async def _run(self) -> None:
        while True:
            if not self._pending:
                if self._closed is not None:
                    return
                await self._wake.wait()
                self._wake.clear()
                continue
            await self._gather()
            if self._group:
                await self._commit(self._group)
                self._group = []

    def _died(self, told: InternalError) -> None:
        """Nobody is left waiting; whether the last entry was put is not known."""
        group, self._group = self._group, []
        self.in_doubt = self.in_doubt or bool(group)
        self._fail([(operation, told) for operation, _ in group if not operation.future.done()])

    async def _gather(self) -> None:
        """The longest run of prepared operations at the head of the queue becomes the group."""
        group = self._group
        while self._pending and len(group) < GROUP_MAX:
            operation = self._pending[0]
            transaction = operation.transaction
            if callable(transaction):
                if operation.prepared is None or not operation.prepared.done():
                    if group:
                        break
                    if operation.prepared is None:
                        await self._wake.wait()
                        self._wake.clear()
                        continue
                    await asyncio.wait([operation.prepared])
                error = _failure(operation.prepared)
                if error is not None:
                    self._pending.popleft()
                    self._fail([(operation, error)])
                    continue
                transaction = operation.prepared.result()
            self._pending.popleft()
            if operation.doomed is not None:
                self._fail([(operation, operation.doomed)])
            else:
                group.append((operation, transaction))

    async def _commit(self, group: list[tuple[Operation, Transaction]]) -> None:
        try:
            outcomes = await self.journal.commit(self.epoch, [t for _, t in group])
        except NoonmarkError as error:
            if isinstance(error, WriterError):
                self.refuse(error)
            self.in_doubt = self.in_doubt or isinstance(error, Indeterminate)
            self._fail([(operation, error) for operation, _ in group])
            return
        self.committed += 1
        answers = [
            (operation, found) for (operation, _), found in zip(group, outcomes, strict=True)
        ]
        if any(found.error is None for _, found in answers):
            self.in_doubt = False  # an entry was put, and so the number before it is decided
        self._fail([(operation, found.error) for operation, found in answers if found.error])
        for operation, found in answers:
            if found.error is None:
                operation.future.set_result(found.state)


def _doom(operation: Operation, failed: Operation, error: BaseException) -> None:
    changed = failed.dependence.changes
    if operation.doomed is None and operation.dependence.is_behind(changed, error):
        operation.doomed = behind(error)


def _failure(prepared: asyncio.Task[Transaction]) -> NoonmarkError | None:
    """Why an operation has nothing to commit."""
    if prepared.cancelled():
        return stopped()
    error = prepared.exception()
    if error is None or isinstance(error, NoonmarkError):
        return error
    return defect.report(error, "the preparation of a write")
