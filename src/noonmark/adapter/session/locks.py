"""Advisory locks: what applications agree on among themselves, as in PostgreSQL.

A lock is a number, or a pair of them; nothing that the database does waits for one. A session may
hold it several times over, shared or alone, for itself or until its transaction ends.

Law (alone): while a session holds a lock alone, no other session holds it.
Law (turns): sessions that wait for a lock get it in the order in which they came.
Law (no deadlock): a session that would wait for itself, by way of others, is refused instead.
Law (own): what a session does about its locks takes a time that its own locks bound, not those of
others; how many it may have is `session_objects_max`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from noonmark.adapter.session.memory import Account
from noonmark.adapter.system.objects import ask
from noonmark.adapter.system.settings import span_of
from noonmark.errors import Interrupted
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Key = tuple[int, ...]
#: What a lock takes that is held.
_LOCK_BYTES = 1_000


class DeadlockDetected(Interrupted, id="deadlock_detected", sqlstate="40P01"):
    """Sessions wait for each other; this one gives way."""


class LockTimeout(Interrupted, id="lock_timeout", sqlstate="55P03"):
    """A lock was not to be had within lock_timeout."""


class Holder(Protocol):
    """A session, as far as its locks go."""

    id: int
    account: Account


@dataclass(frozen=True)
class Wish:
    """A lock that a session wants."""

    session: int
    account: Account = field(compare=False)
    key: Key
    shared: bool
    transaction: bool

    @property
    def way(self) -> tuple[bool, bool]:
        """How it would be held."""
        return self.shared, self.transaction


@dataclass
class _Lock:
    """One lock: how often each session holds it, shared or not, for a transaction or not."""

    held: dict[int, Counter[tuple[bool, bool]]] = field(default_factory=dict)
    waiting: dict[asyncio.Future[None], Wish] = field(default_factory=dict)

    def hindrances(self, wish: Wish) -> set[int]:
        """The sessions that hold what goes not together with it."""
        return {
            session
            for session, ways in self.held.items()
            if session != wish.session
            and (not wish.shared or any(not shared for shared, _ in ways))
        }


class Locks:
    """The locks of a database, in memory: they end with their sessions."""

    def __init__(self) -> None:
        self._locks: dict[Key, _Lock] = {}
        #: The keys that a session holds, for its transaction or for itself.
        self._of: dict[tuple[int, bool], set[Key]] = {}
        #: What sessions wait for: each for one lock.
        self._waits: dict[int, Wish] = {}

    def take(self, wish: Wish) -> bool:
        """Take a lock if that needs no waiting."""
        lock = self._locks.get(wish.key) or _Lock()
        queue = lock.waiting.values()
        behind = wish.session not in lock.held and any(
            not (each.shared and wish.shared) for each in queue
        )
        if behind or lock.hindrances(wish):
            return False
        if wish.key not in self._of.get((wish.session, wish.transaction), ()):
            wish.account.take("advisory locks", _LOCK_BYTES)
        self._locks[wish.key] = lock
        self._hold(lock, wish)
        return True

    def _hold(self, lock: _Lock, wish: Wish) -> None:
        lock.held.setdefault(wish.session, Counter())[wish.way] += 1
        self._of.setdefault((wish.session, wish.transaction), set()).add(wish.key)

    async def wait(self, wish: Wish, timeout_s: float | None) -> None:
        """Take a lock, after those who came before.

        Raises:
            DeadlockDetected: it would wait for itself.
            LockTimeout: it took too long.
        """
        if self.take(wish):
            return
        lock = self._locks[wish.key]
        if self._is_circle(wish):
            raise DeadlockDetected("deadlock detected", hint="Take locks in one order everywhere.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if wish.key not in self._of.get((wish.session, wish.transaction), ()):
            wish.account.take("advisory locks", _LOCK_BYTES)  # now: its turn cannot be refused
        lock.waiting[turn] = self._waits[wish.session] = wish
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except TimeoutError:
            self._give_back(turn, wish)
            raise LockTimeout("canceling statement due to lock timeout") from None
        except BaseException:
            self._give_back(turn, wish)
            raise
        finally:
            lock.waiting.pop(turn, None)
            del self._waits[wish.session]
            self._next(wish.key)

    def release(self, wish: Wish) -> bool:
        """Let go once; whether it was held so."""
        lock = self._locks.get(wish.key)
        ways = None if lock is None else lock.held.get(wish.session)
        if lock is None or ways is None or not ways[wish.way]:
            return False
        ways[wish.way] -= 1
        self._tidy(lock, wish.session)
        if not any(way[1] == wish.transaction for way in lock.held.get(wish.session, ())):
            self._let_go(wish)
        self._next(wish.key)
        return True

    def _let_go(self, wish: Wish) -> None:
        held = self._of.get((wish.session, wish.transaction))
        if held is not None and wish.key in held:
            held.discard(wish.key)
            if not held:
                del self._of[wish.session, wish.transaction]
        wish.account.free("advisory locks", _LOCK_BYTES)

    def release_all(self, session: Holder, *, transaction: bool) -> None:
        """Let go of all that a session holds for its transaction, or for itself."""
        for key in self._of.pop((session.id, transaction), ()):
            lock = self._locks[key]
            ways = lock.held[session.id]
            for way in [each for each in ways if each[1] == transaction]:
                del ways[way]
            session.account.free("advisory locks", _LOCK_BYTES)
            self._tidy(lock, session.id)
            self._next(key)

    def blocking(self, session: int) -> list[int]:
        """The sessions that hold what a session waits for, or that wait for it before that one."""
        found: dict[int, None] = {}
        for lock in self._locks.values():
            ahead: list[Wish] = []
            for wish in lock.waiting.values():
                if wish.session == session:
                    found |= dict.fromkeys(sorted(lock.hindrances(wish)))
                    found |= dict.fromkeys(
                        w.session for w in ahead if not (w.shared and wish.shared)
                    )
                ahead.append(wish)
        return list(found)

    def forget(self, session: Holder) -> None:
        """A session has ended."""
        self.release_all(session, transaction=True)
        self.release_all(session, transaction=False)

    def _give_back(self, turn: asyncio.Future[None], wish: Wish) -> None:
        if turn.done() and not turn.cancelled():
            self.release(wish)  # it came, and nobody takes it
        elif wish.key not in self._of.get((wish.session, wish.transaction), ()):
            wish.account.free("advisory locks", _LOCK_BYTES)

    @staticmethod
    def _tidy(lock: _Lock, session: int) -> None:
        lock.held[session] = +lock.held[session]
        if not lock.held[session]:
            del lock.held[session]

    def _next(self, key: Key) -> None:
        """Give the lock to those who waited longest."""
        lock = self._locks.get(key)
        if lock is None:
            return
        for turn, wish in list(lock.waiting.items()):
            if turn.done():
                continue
            if lock.hindrances(wish):
                break
            self._hold(lock, wish)
            turn.set_result(None)
        if not lock.held and not lock.waiting:
            del self._locks[key]

    def _is_circle(self, wish: Wish) -> bool:
        waits = self._waits
        open_, seen = [wish], set()
        while open_:
            for session in self._locks[(at := open_.pop()).key].hindrances(at):
                if session == wish.session:
                    return True
                if session in waits and session not in seen:
                    seen.add(session)
                    open_.append(waits[session])
        return False


def about_locks(session: AdapterSession) -> list[Function]:
    """The functions of PostgreSQL, each for a bigint and for two integers."""
    found: list[Function] = []
    for types in ((t.BigInt,), (t.Integer, t.Integer)):
        for transaction in (False, True):
            for shared in (False, True):
                found += _functions(session, types, shared, transaction)

    def all_of_them() -> str:
        session.database.locks.release_all(session, transaction=False)
        return ""

    found.append(ask("pg_advisory_unlock_all", (), t.Text("void"), all_of_them, volatile=True))
    return found


def _functions(
    session: AdapterSession, types: tuple[type[t.SqlType], ...], shared: bool, transaction: bool
) -> list[Function]:
    def wish(*key: int) -> Wish:
        return Wish(session.id, session.account, key, shared, transaction)

    async def lock(*key: int) -> str:
        wait_ms = span_of(session.variables.get("lock_timeout", "0"))
        await session.database.locks.wait(wish(*key), wait_ms / 1000 if wait_ms else None)
        return ""

    middle, end = "xact_" if transaction else "", "_shared" if shared else ""
    name = f"advisory_{middle}lock{end}"
    found = [
        ask(f"pg_{name}", types, t.Text("void"), lock, fallible=True, volatile=True, waits=True),
        ask(f"pg_try_{name}", types, t.Boolean(),
            lambda *key: session.database.locks.take(wish(*key)), fallible=True, volatile=True),
    ]  # fmt: skip
    if not transaction:
        found.append(
            ask(f"pg_advisory_unlock{end}", types, t.Boolean(),
                lambda *key: session.database.locks.release(wish(*key)), volatile=True)
        )  # fmt: skip
    return found
