"""Standing still: several may ask a thread to, and each is told when it does.

    ask        somebody wants it to stand still; the future is done when it does
    take_back  they do not need it any more
    grant      the thread, between two pieces of its work: it stands still while this is true
    over       the thread has ended, and stands still for ever

Law (everybody): whoever has asked is told, however many ask, and whether the thread goes on or
ends. While one of them has not taken it back, the thread does not work.

Where it runs: `grant` in the thread, the others anywhere.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field


@dataclass
class Standstill:
    """See the module."""

    _asked: set[Future[None]] = field(default_factory=set)
    _is_over: bool = False
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def ask(self) -> Future[None]:
        """Ask for it."""
        asking: Future[None] = Future()
        with self._mutex:
            self._asked.add(asking)
            if self._is_over:
                asking.set_result(None)
        return asking

    def take_back(self, asking: Future[None]) -> None:
        """What was asked for is not needed any more."""
        with self._mutex:
            self._asked.discard(asking)

    def grant(self) -> bool:
        """Tell all who ask that it stands still; whether there are any."""
        with self._mutex:
            self._tell()
            return bool(self._asked)

    def over(self) -> None:
        """Tell all who ask, and who will."""
        with self._mutex:
            self._is_over = True
            self._tell()

    def _tell(self) -> None:
        for asking in self._asked:
            if not asking.done():
                asking.set_result(None)
