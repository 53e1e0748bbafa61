"""Channels: what NOTIFY says to the sessions that LISTEN, as in PostgreSQL.

Law (commit): what a transaction notifies is told when it has committed, in the order of its
statements, the same channel and payload once; nothing of one that is rolled back. LISTEN and
UNLISTEN count from the commit on, too.
Law (order): a listener hears the notifications of all sessions in the order of their commits.

Notifications are kept in memory alone, for sessions that are connected now: who comes later has
missed them. A listener that takes none is told at its next statement; of those that wait at most
`WAITING_MAX` are kept, then the sender is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from noonmark.adapter.contract import Notification
from noonmark.adapter.session.transaction import current
from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.errors import InvalidArgument

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

WAITING_MAX = 10_000
_NAME_BYTES_MAX, _PAYLOAD_BYTES_MAX = 63, 7_999


@dataclass(frozen=True)
class Announcement:
    """One LISTEN, UNLISTEN or NOTIFY, until its transaction commits; `channel` None is all."""

    what: Literal["listen", "unlisten", "notify"]
    channel: str | None
    payload: str = ""


class Inbox:
    """What a session has been told, and whom to wake."""

    def __init__(self) -> None:
        self.waiting: deque[Notification] = deque()
        self.wake: Callable[[], None] | None = None

    def take(self) -> list[Notification]:
        """What came since."""
        found = list(self.waiting)
        self.waiting.clear()
        return found


class Channels:
    """Who listens to what."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[int, AdapterSession]] = {}

    def check(self) -> None:
        """Before NOTIFY.

        Raises:
            ProgramLimitExceeded: a listener is too far behind.
        """
        for met in self._listeners.values():
            for each in met.values():
                if len(each.inbox.waiting) >= WAITING_MAX:
                    raise ProgramLimitExceeded(
                        "too many notifications wait for a listener",
                        detail=f"Session {each.id} has not taken {WAITING_MAX} of them.",
                        hint="It takes them between its transactions: end its transaction.",
                    )

    def announce(self, session: AdapterSession, said: Iterable[Announcement]) -> None:
        """Do what a committed transaction of a session said."""
        for each in dict.fromkeys(said):
            if each.what == "notify":
                assert each.channel is not None
                self._tell(Notification(session.id, each.channel, each.payload))
            elif each.what == "listen":
                assert each.channel is not None
                self._listeners.setdefault(each.channel, {})[session.id] = session
            else:
                self.forget(session, each.channel)

    def forget(self, session: AdapterSession, channel: str | None = None) -> None:
        """A session listens no more: to one channel, or to any."""
        for name in list(self._listeners) if channel is None else [channel]:
            met = self._listeners.get(name, {})
            met.pop(session.id, None)
            if not met:
                self._listeners.pop(name, None)

    def _tell(self, notification: Notification) -> None:
        for session in self._listeners.get(notification.channel, {}).values():
            session.inbox.waiting.append(notification)
            if session.inbox.wake is not None:
                session.inbox.wake()


def announce(session: AdapterSession, said: Announcement) -> None:
    """Say something when the transaction commits; where there is none, the statement.

    Raises:
        InvalidArgument: the channel or the payload cannot be.
        ProgramLimitExceeded: see `Channels.check`.
    """
    if said.channel is not None and not said.channel:
        raise InvalidArgument("channel name cannot be empty")
    if said.channel is not None and len(said.channel.encode()) > _NAME_BYTES_MAX:
        raise InvalidArgument("channel name too long")
    if len(said.payload.encode()) > _PAYLOAD_BYTES_MAX:
        raise InvalidArgument("payload string too long")
    if said.what == "notify":
        session.database.channels.check()
    transaction = current(session)
    (session.said if transaction is None else transaction.said).append(said)


def statement_ended(session: AdapterSession, *, well: bool = True) -> None:
    """A statement has ended: outside of a transaction that is its commit, or its rollback."""
    if well:
        session.database.channels.announce(session, session.said)
    session.said.clear()
    if session.transaction is None:
        session.database.locks.release_all(session.id, transaction=True)
