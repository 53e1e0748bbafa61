"""Channels: what NOTIFY says to the sessions that LISTEN, as in PostgreSQL.

Law (commit): what a transaction notifies is told when it has committed, in the order of its
statements, the same channel and payload once; nothing of one that is rolled back. LISTEN and
UNLISTEN count from the commit on, too.
Law (order): a listener hears the notifications of all sessions in the order of their commits.

Notifications are kept in memory alone, for sessions that are connected now: who comes later has
missed them. A listener that takes none is told at its next statement; of those that wait at most
`WAITING_MAX` are kept, and as much as the listener's session may keep.

Law (the one): a listener that is further behind is ended, with an error that says so: it has missed
what it was to hear, and nobody else is refused or waits for it.
Law (own): what a session does about its channels takes a time that the listeners of these channels
bound, not all channels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from noonmark.adapter.contract import Notification
from noonmark.adapter.session.memory import Account
from noonmark.adapter.session.transaction import current
from noonmark.errors import Interrupted, InvalidArgument, NoonmarkError

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

WAITING_MAX = 10_000
#: What a notification takes beside its payload, and a channel that is listened to.
_ANNOUNCED_BYTES, _CHANNEL_BYTES = 300, 1_000
_NAME_BYTES_MAX, _PAYLOAD_BYTES_MAX = 63, 7_999


class Missed(Interrupted, id="notifications_missed", sqlstate="53400"):
    """A listener did not take what it was to hear."""


@dataclass(frozen=True)
class Announcement:
    """One LISTEN, UNLISTEN or NOTIFY, until its transaction commits; `channel` None is all."""

    what: Literal["listen", "unlisten", "notify"]
    channel: str | None
    payload: str = ""

    @property
    def bytes(self) -> int:
        """What it takes."""
        return _ANNOUNCED_BYTES + len(self.channel or "") + len(self.payload)


class Inbox:
    """What a session has been told, and whom to wake."""

    def __init__(self, account: Account) -> None:
        self.waiting: deque[Notification] = deque()
        self.wake: Callable[[], None] | None = None
        #: Ends the conversation.
        self.end: Callable[[NoonmarkError], None] | None = None
        #: Why it was told no more.
        self.missed: NoonmarkError | None = None
        self._account = account
        self._bytes = 0

    def add(self, notification: Notification) -> bool:
        """Something to be told; False where too much of it waits."""
        size = _ANNOUNCED_BYTES + len(notification.payload)
        if len(self.waiting) >= WAITING_MAX or not self._account.offer("heard", size):
            return False
        self.waiting.append(notification)
        self._bytes += size
        return True

    def take(self) -> list[Notification]:
        """What came since."""
        found = list(self.waiting)
        if found:
            self.waiting.clear()
            self._account.free("heard", self._bytes, len(found))
            self._bytes = 0
        return found


class Channels:
    """Who listens to what."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[int, AdapterSession]] = {}
        #: The channels of a session.
        self._of: dict[int, set[str]] = {}

    def announce(self, session: AdapterSession, said: Iterable[Announcement]) -> None:
        """Do what a committed transaction of a session said."""
        for each in dict.fromkeys(said):
            if each.what == "notify":
                assert each.channel is not None
                self._tell(Notification(session.id, each.channel, each.payload))
            elif each.what == "listen":
                assert each.channel is not None
                self._listen(session, each.channel)
            else:
                self.forget(session, each.channel)

    def heard_by(self, session: AdapterSession) -> list[str]:
        """The channels that a session listens to."""
        return [name for name, met in self._listeners.items() if session.id in met]

    def fullness(self) -> float:
        """How near the listener that is furthest behind is to what is kept for one."""
        inboxes = [each.inbox for met in self._listeners.values() for each in met.values()]
        return max([len(each.waiting) for each in inboxes], default=0) / WAITING_MAX

    def forget(self, session: AdapterSession, channel: str | None = None) -> None:
        """A session listens no more: to one channel, or to any."""
        known = self._of.get(session.id, set())
        for name in list(known) if channel is None else known & {channel}:
            known.discard(name)
            session.account.free("channels", _CHANNEL_BYTES)
            met = self._listeners[name]
            del met[session.id]
            if not met:
                del self._listeners[name]
        if not known:
            self._of.pop(session.id, None)

    def _listen(self, session: AdapterSession, channel: str) -> None:
        known = self._of.setdefault(session.id, set())
        if channel not in known:
            known.add(channel)
            session.account.force("channels", _CHANNEL_BYTES)
            self._listeners.setdefault(channel, {})[session.id] = session

    def count(self, session: AdapterSession) -> int:
        """How many channels a session listens to."""
        return len(self._of.get(session.id, ()))

    def _tell(self, notification: Notification) -> None:
        for session in list(self._listeners.get(notification.channel, {}).values()):
            if session.inbox.add(notification):
                if session.inbox.wake is not None:
                    session.inbox.wake()
                continue
            self.forget(session)
            session.inbox.take()
            session.inbox.missed = missed = Missed(
                "terminating connection because too many notifications were not taken",
                detail=f"At most {WAITING_MAX} wait, within session_memory and sessions_memory.",
                hint="Notifications come between transactions: end the transaction, and read.",
            )
            if session.inbox.end is not None:
                session.inbox.end(missed)


def announce(session: AdapterSession, said: Announcement) -> None:
    """Say something when the transaction commits; where there is none, the statement.

    Raises:
        InvalidArgument: the channel or the payload cannot be.
        OutOfMemory, ProgramLimitExceeded: it is too much; see `session.memory`.
    """
    if said.channel is not None and not said.channel:
        raise InvalidArgument("channel name cannot be empty")
    if said.channel is not None and len(said.channel.encode()) > _NAME_BYTES_MAX:
        raise InvalidArgument("channel name too long")
    if len(said.payload.encode()) > _PAYLOAD_BYTES_MAX:
        raise InvalidArgument("payload string too long")
    transaction = current(session)
    already = session.database.channels.count(session) if said.what == "listen" else 0
    if already >= session.database.memory.limits.session_objects:
        session.account.take("channels", 0)  # refuses
    session.account.take("notifications", said.bytes)
    (session.said if transaction is None else transaction.said).append(said)


def statement_ended(session: AdapterSession, *, well: bool = True) -> None:
    """A statement has ended: outside of a transaction that is its commit, or its rollback."""
    if well:
        session.database.channels.announce(session, session.said)
    for said in session.said:
        session.account.free("notifications", said.bytes)
    session.said.clear()
    if session.transaction is None:
        session.database.locks.release_all(session, transaction=True)
        session.database.numbers.end(session.id, committed=well)
