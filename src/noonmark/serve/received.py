"""Messages that are not whole yet, of all clients: what they take is bounded.

A message may be long (a row of 256 MB, a body of 16 MB), and a client may send all of it but the
end, on as many connections as it gets. So what has come of long messages is counted for all
connections together.

Law (bounded): it is at most `receive_memory`. Who goes beyond is refused or ended, with an error
that names it; a message that is short, or whole, is never refused for others.

Where it runs: the loop of the front ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from noonmark.adapter.worker.errors import OutOfMemory


class Received:
    """What is there of long messages."""

    def __init__(self, most_mb: int = 1_024) -> None:
        self._most_mb = most_mb
        self.taken = 0

    def move(self, size: int) -> bool:
        """Count so many bytes more, or fewer; False where that is too much: nothing is counted."""
        if size > 0 and self.taken + size > self._most_mb << 20:
            return False
        self.taken += size
        return True

    def refusal(self) -> OutOfMemory:
        """What to tell who found no room."""
        return OutOfMemory(
            f"messages that are not whole yet take more than {self._most_mb} MB of memory",
            detail="That is receive_memory, for all clients together.",
            hint="Send it in smaller pieces, or again when others are done.",
        )

    @contextmanager
    def message(self) -> Iterator[Message]:
        """One message that comes in pieces."""
        found = Message(self)
        try:
            yield found
        finally:
            self.move(-found.size)


class Message:
    """What has come of one message."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self.size = 0

    def add(self, size: int) -> None:
        """A piece more.

        Raises:
            OutOfMemory: there is no room for it.
        """
        if not self._received.move(size):
            raise self._received.refusal()
        self.size += size
