"""The order of writes: called first, applied first; what waits together commits together.

Every mutation is an operation in one queue. An operation that has parts to write prepares them at
once and beside others; it is committed in its turn. While one entry is being made durable, the
operations behind it gather, and the next entry takes all of them that are prepared (group
commit).

Guarantee (ordering): if `submit(a)` returned before `submit(b)` was called, a is applied before
b, whether or not a's future had resolved. Each operation is atomic; one that is refused changes
nothing and does not hold back those behind it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import NoonmarkError, Stopped, WriterError
from noonmark.persist.command import Transaction
from noonmark.persist.journal import Journal
from noonmark.persist.runtime import Runtime, stopped
from noonmark.persist.state import State

#: Operations in one entry; bounds the size of an entry together with `Config.inline_bytes_max`.
GROUP_MAX = 256

Prepare = Callable[[], Coroutine[Any, Any, Transaction]]


@dataclass
class Operation:
    """One call: its transaction, or how to prepare it, and the future that its caller holds."""

    transaction: Transaction | Prepare
    future: Future[State] = field(default_factory=Future)
    prepared: asyncio.Task[Transaction] | None = None


class WriteQueue:
    """See the module. `submit` may be called from any thread; the rest runs on the loop."""

    def __init__(self, runtime: Runtime, journal: Journal, epoch: int) -> None:
        self.runtime = runtime
        self.journal = journal
        self.epoch = epoch
        self.committed = 0
        self._mutex = threading.Lock()
        self._pending: deque[Operation] = deque()
        self._wake = asyncio.Event()
        self._closed: NoonmarkError | None = None
        self._task = runtime.loop.create_task(self._run())

    def submit(self, transaction: Transaction | Prepare) -> Future[State]:
        """Queue a transaction; the future resolves to the state that made it durable."""
        operation = Operation(transaction)
        operation.future.set_running_or_notify_cancel()  # once queued it cannot be taken back
        with self._mutex:
            if self._closed is not None:
                operation.future.set_exception(self._closed)
                return operation.future
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
        await self._task

    def refuse(self, why: NoonmarkError) -> None:
        """Answer every later operation with this error."""
        with self._mutex:
            self._closed = self._closed or why

    @property
    def refusal(self) -> NoonmarkError | None:
        """What every later operation is answered with, if nothing is taken any more."""
        return self._closed

    async def _run(self) -> None:
        while True:
            if not self._pending:
                if self._closed is not None:
                    return
                await self._wake.wait()
                self._wake.clear()
                continue
            group = await self._next_group()
            if group:
                await self._commit(group)

    async def _next_group(self) -> list[tuple[Operation, Transaction]]:
        """The longest run of prepared operations at the head of the queue."""
        group: list[tuple[Operation, Transaction]] = []
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
                error = operation.prepared.exception()
                if error is not None:
                    self._pending.popleft()
                    operation.future.set_exception(error)
                    continue
                transaction = operation.prepared.result()
            self._pending.popleft()
            group.append((operation, transaction))
        return group

    async def _commit(self, group: list[tuple[Operation, Transaction]]) -> None:
        try:
            outcomes = await self.journal.commit(self.epoch, [t for _, t in group])
        except Exception as error:
            if not isinstance(error, NoonmarkError):
                self.refuse(_defect(error))
            elif isinstance(error, WriterError):
                self.refuse(error)
            for operation, _ in group:
                operation.future.set_exception(error)
            return
        self.committed += 1
        for (operation, _), outcome in zip(group, outcomes, strict=True):
            if outcome.error is not None:
                operation.future.set_exception(outcome.error)
            else:
                operation.future.set_result(outcome.state)


def _defect(error: Exception) -> NoonmarkError:
    """Stop writing when our own code failed: nobody may be left waiting, and nothing is guessed."""
    defect = Stopped(
        "this persist runtime stopped because of an internal error",
        detail=repr(error),
        hint="Open the location again; everything acknowledged is durable.",
    )
    defect.__cause__ = error
    return defect
