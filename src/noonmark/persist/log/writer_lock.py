"""The write lock of a location, from the side of a process that wants it.

The lock is in the log (`state.Lock`): its epoch fences whoever held it before. Its lease only
says when taking it over is polite; on local disk the operating system knows better whether its
holder lives (`host_lock`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from noonmark.clock import Clock
from noonmark.errors import Fenced, LockHeld, StorageError, WriterError
from noonmark.persist.log import command as c
from noonmark.persist.log.host_lock import HostLock
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import Lock

#: The lease of a lock whose holder the operating system watches: no clock ends it.
_FOREVER_MS = 2**62
_TAKE_ATTEMPTS = 100
_MARGIN_S = 0.01


class WriterLock:
    """Taking, holding and releasing the write lock. Runs on the loop."""

    def __init__(
        self,
        journal: Journal,
        host: HostLock | None,
        *,
        owner: str,
        reentrance_id: str | None,
        lease_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._journal = journal
        self._clock: Clock = journal.clock
        self._host = host
        self._owner = owner
        self._reentrance_id = reentrance_id
        self._lease_ms = lease_ms
        self._now_ms = now_ms
        #: False when the operating system watches over this process instead of a clock.
        self.lease_is_needed = True
        self.epoch = 0

    async def take(self, address: str) -> int:
        """Become the writer; returns the epoch.

        Args:
            address: where readers can ask to be notified; empty for nowhere.
        """
        journal = self._journal
        begin = partial(journal.head.begin, journal.state.seqno)
        await journal.retries.run("note log", begin)
        watched = False
        for _ in range(_TAKE_ATTEMPTS):
            now_ms, old = self._now_ms(), self._journal.state.lock
            # Whoever held a lock that ends with its process had the host lock, which is ours now.
            orphaned = not self.lease_is_needed and old is not None and ends_with_its_process(old)
            lock = Lock(
                epoch=self._journal.state.epoch + 1,
                reentrance_id=self._reentrance_id or self._clock.fresh_id(),
                holder=self._owner,
                taken_ms=now_ms,
                expires_ms=now_ms + self._lease_ms if self.lease_is_needed else _FOREVER_MS,
                address=address,
                noted=True,
            )
            try:
                (outcome,) = await self._journal.commit(lock.epoch, [(c.TakeLock(lock, orphaned),)])
            except Fenced:
                await self._journal.refresh()  # somebody else was quicker; ask again
                continue
            if isinstance(outcome.error, LockHeld) and not watched and self._is_behind():
                watched = True
                await self._watch()
                continue
            if outcome.error is not None:
                raise outcome.error
            self.epoch = lock.epoch
            return lock.epoch
        raise LockHeld("the write lock changes hands too fast to be taken", holder=None)

    def _is_behind(self) -> bool:
        """Whether a lease that runs by an earlier clock would outlast its length by this one."""
        return self._clock.now_ms() < self._journal.state.now_ms

    async def _watch(self) -> None:
        """Wait until the lease of the holder has run out, unless it is renewed meanwhile."""
        lock = self._journal.state.lock
        left_ms = 0 if lock is None else lock.expires_ms - self._now_ms()
        await self._clock.sleep(max(0, min(left_ms, self._lease_ms)) / 1000 + _MARGIN_S)
        await self._journal.refresh()

    def ask_host(self) -> None:
        """On local disk: ask the operating system who lives.

        A lock without an end belongs to the process that has the host lock. A lock with a lease was
        taken over from a process that kept the host lock, and then the lease alone decides.
        """
        if self._host is None:
            return
        if self._host.acquire():
            self.lease_is_needed = False
            return
        lock = self._journal.state.lock
        if lock is not None and (
            not ends_with_its_process(lock) or lock.reentrance_id == self._reentrance_id
        ):
            return
        holder = self._host.holder()
        raise LockHeld(
            f'the location is being written by "{holder}"',
            detail=f"It has the file lock of {self._host.folder}"
            + (f"; the last epoch is {lock.epoch}." if lock else "."),
            hint="Stop that process, or open the location read-only.",
            holder=holder,
            epoch=self._journal.state.epoch,
        )

    async def release(self) -> None:
        """Stop being the writer, in good order if storage lets us."""
        try:
            await self._journal.commit(self.epoch, [(c.ReleaseLock(),)])
        except (WriterError, StorageError):
            return  # somebody else has it already, or finds out by the lease or the host lock

    def let_go_of_host(self) -> None:
        """Free the host lock, if it is ours."""
        if self._host is not None:
            self._host.release()


def is_free(lock: Lock | None, host: HostLock | None, now_ms: int) -> bool:
    """Whether the lock could be had now, as far as one can tell without asking for it."""
    if lock is None or lock.released:
        return True
    if ends_with_its_process(lock):
        return host is not None and host.is_free()
    return lock.expires_ms <= now_ms


def ends_with_its_process(lock: Lock) -> bool:
    """Whether no lease but the operating system says when its holder is gone."""
    return lock.expires_ms == _FOREVER_MS
