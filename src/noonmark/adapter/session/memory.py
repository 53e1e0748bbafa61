"""What sessions keep between their statements, counted: one client cannot take the server's memory.

A client gives names to what the server then keeps for it: prepared statements, portals, cursors,
settings, savepoints, advisory locks, channels; and it leaves things to be done or to be taken:
changes of its transaction, notifications. All of it is counted here, as the objects in memory that
it is, by the sort of thing.

Law (one): what one session keeps is at most `session_memory`, and at most `session_objects_max` of
each sort; what ends a session, or looks through what it keeps, takes a time that this bounds.
Law (all): what all sessions keep is at most `sessions_memory`, beside `OWN_BYTES` of each: a
session that keeps little is never refused for what others keep.
Law (nothing): who is refused is told which limit it was and what takes the memory, and keeps what
it had.

What is kept only to be quicker (plans, texts that were read) is counted too, and let go instead of
refused.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from noonmark.adapter.worker.errors import OutOfMemory, ProgramLimitExceeded
from noonmark.adapter.worker.limits import Limits

K = TypeVar("K")
V = TypeVar("V")

#: What each session may keep whatever others do.
OWN_BYTES = 256 << 10
#: What is done about a limit, by the sort of thing.
_HINTS = {
    "prepared statements": "DEALLOCATE those that are not needed.",
    "portals": "Close them, or end the transaction.",
    "cursors": "CLOSE them.",
    "settings": "RESET those that are not needed.",
    "savepoints": "RELEASE those that are not needed.",
    "advisory locks": "Unlock those that are not needed.",
    "channels": "UNLISTEN those that are not needed.",
    "notifications": "Notify in several transactions.",
    "changes": "COMMIT in between, or write fewer rows at once.",
}
#: What of the reading of a text is kept, for each word or sign in it, and for each letter at most.
_WORD_BYTES, _LETTER_BYTES = 1_200, 600
_WORD = re.compile(r"'(?:[^']|'')*'|\w+|[^\w\s]")
#: Texts up to this length are looked at word by word.
_LOOKED_AT = 16 << 10
#: An object, beside the text or the bytes in it; a place in a tuple.
_OBJECT_BYTES, _PLACE_BYTES = 56, 16


def text_bytes(text: str) -> int:
    """About what a text takes once it has been read: its words, beside what stands in quotes."""
    if len(text) <= _LOOKED_AT:
        return 2 * len(text) + _WORD_BYTES * sum(1 for _ in _WORD.finditer(text))
    return 2 * len(text) + _LETTER_BYTES * sum(map(len, text.split("'")[::2]))


def value_bytes(value: Any) -> int:
    """About what a value takes."""
    if isinstance(value, str | bytes):
        return _OBJECT_BYTES + len(value)
    if isinstance(value, tuple | list):
        return rows_bytes((value,))
    return _OBJECT_BYTES


def rows_bytes(rows: Sequence[Sequence[Any]]) -> int:
    """About what rows take."""
    return sum(_OBJECT_BYTES + _PLACE_BYTES * len(row) + sum(map(value_bytes, row)) for row in rows)


class Memory:
    """What all sessions of a server keep."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        #: What sessions have beyond what is their own.
        self.taken = 0


class Account:
    """What one session keeps."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.sizes: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.total = 0
        #: What gives way to what has to be kept.
        self.caches: list[Cache[Any, Any]] = []

    def take(self, what: str, size: int, count: int = 1) -> None:
        """Count something that is about to be kept.

        Raises:
            OutOfMemory, ProgramLimitExceeded: there is no room; nothing was counted.
        """
        most = self._memory.limits.session_objects
        if count and self.counts[what] + count > most:
            raise ProgramLimitExceeded(
                f"a session cannot have more than {most} {what}",
                detail="That is session_objects_max.",
                hint=_HINTS.get(what),
            )
        if self._is_too_much(size) is not None:
            for cache in self.caches:
                cache.clear()
        full = self._is_too_much(size)
        if full is not None:
            raise self._refusal(full, what)
        self.force(what, size, count)

    def offer(self, what: str, size: int) -> bool:
        """Count something that need not be kept; False where there is no room."""
        if self._is_too_much(size) is not None:
            return False
        self.force(what, size)
        return True

    def force(self, what: str, size: int, count: int = 1) -> None:
        """Count something that is there in any case."""
        self.sizes[what] += size
        self.counts[what] += count
        self._move(size)

    def free(self, what: str, size: int, count: int = 1) -> None:
        """It is kept no longer."""
        self.sizes[what] -= size
        self.counts[what] -= count
        self._move(-size)

    @contextmanager
    def holding(self, what: str, size: int) -> Iterator[None]:
        """Have it for as long as the block lasts. Raises as `take` does."""
        self.take(what, size, 0)
        try:
            yield
        finally:
            self.free(what, size, 0)

    def close(self) -> None:
        """The session is over."""
        self._move(-self.total)
        self.sizes.clear()
        self.counts.clear()

    def _move(self, size: int) -> None:
        before, self.total = self.total, self.total + size
        self._memory.taken += max(0, self.total - OWN_BYTES) - max(0, before - OWN_BYTES)

    def _is_too_much(self, size: int) -> tuple[str, int] | None:
        """The limit that so much more would be beyond."""
        limits, after = self._memory.limits, self.total + size
        if size > 0 and after > limits.session_memory_mb << 20:
            return "session_memory", limits.session_memory_mb
        more = max(0, after - OWN_BYTES) - max(0, self.total - OWN_BYTES)
        if more > 0 and self._memory.taken + more > limits.sessions_memory_mb << 20:
            return "sessions_memory", limits.sessions_memory_mb
        return None

    def _refusal(self, full: tuple[str, int], what: str) -> OutOfMemory:
        name, most_mb = full
        who = "this session keeps" if name == "session_memory" else "all sessions together keep"
        most = [each for each in self.sizes.most_common(3) if each[1] > 0]
        parts = ", ".join(f"{kind} {size >> 20} MB" for kind, size in most)
        own = f" This session has: {parts}." if parts else ""
        return OutOfMemory(
            f"out of memory: {who} more than {most_mb} MB with these {what}",
            detail=f"That is {name}.{own}",
            hint=_HINTS.get(what),
        )


class Counted(MutableMapping[str, V]):
    """Things by name, counted in an account; a name has room in the place of what it had."""

    def __init__(self, account: Account, what: str, size_of: Callable[[V], int]) -> None:
        self._account, self._what, self._size_of = account, what, size_of
        self._things: dict[str, V] = {}
        self._sizes: dict[str, int] = {}
        self.get = self._things.get  # type: ignore[method-assign]  # asked for every statement

    def __getitem__(self, name: str) -> V:
        return self._things[name]

    def __setitem__(self, name: str, thing: V) -> None:
        before = self._sizes.get(name)
        size = _OBJECT_BYTES + len(name) + self._size_of(thing)
        if before is None:
            self._account.take(self._what, size)
        elif size > before:
            self._account.take(self._what, size - before, 0)
        else:
            self._account.free(self._what, before - size, 0)
        self._things[name], self._sizes[name] = thing, size

    def __delitem__(self, name: str) -> None:
        del self._things[name]
        self._account.free(self._what, self._sizes.pop(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def noted(self) -> dict[str, V]:
        """What there is now."""
        return dict(self._things)

    def go_back(self, things: Mapping[str, V]) -> None:
        """Have these instead, as before: nobody can refuse them."""
        self.clear()
        for name, thing in things.items():
            size = _OBJECT_BYTES + len(name) + self._size_of(thing)
            self._account.force(self._what, size)
            self._things[name], self._sizes[name] = thing, size


class Cache(dict[K, V], Generic[K, V]):
    """What was made last, kept to be quicker: as much of it as there is room for."""

    def __init__(
        self, what: str, most_bytes: int, most_count: int, account: Account | None = None
    ) -> None:
        super().__init__()
        self._what, self._most_bytes, self._most_count = what, most_bytes, most_count
        self._account = account
        if account is not None:
            account.caches.append(self)
        self._sizes: dict[K, int] = {}
        self.bytes = 0

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep it, in the place of what was kept first, if it has room at all."""
        self.let_go(key)
        while self and (len(self) >= self._most_count or self.bytes + size > self._most_bytes):
            self.let_go(next(iter(self)))
        if size > self._most_bytes:
            return
        if self._account is not None and not self._account.offer(self._what, size):
            return
        self[key], self._sizes[key] = value, size
        self.bytes += size

    def let_go(self, key: K) -> None:
        """Keep it no longer."""
        if key in self:
            size = self._sizes.pop(key)
            del self[key]
            self.bytes -= size
            if self._account is not None:
                self._account.free(self._what, size)

    def renew(self, key: K) -> V:
        """What is kept, as if it had been made just now."""
        value = self[key] = self.pop(key)
        return value

    def clear(self) -> None:
        """Keep nothing."""
        for key in list(self):
            self.let_go(key)
