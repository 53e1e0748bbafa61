"""Numbers of transactions: pg_current_xact_id and what is asked of such a number.

A transaction has a number from when it first asks for one; one that never asks has none, as one
that only reads in PostgreSQL. Numbers are kept in memory by the process that gave them, and what
became of the last `KEPT_MAX` of them.

Law (order): a number is greater than all that were given before, also by an earlier process.
Law (snapshot): a transaction is visible in a snapshot iff it had committed, or failed, when that
was taken: it is below xmax and not among those under way.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from noonmark.adapter.session.transaction import current
from noonmark.adapter.system.objects import ask
from noonmark.clock import Clock
from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.coded.lsn import Xid8
from noonmark.rows.coded.snapshots import PgSnapshot, Snapshot, TxidSnapshot
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

KEPT_MAX = 100_000
#: Numbers for each millisecond since the epoch: so many transactions no process has.
_PER_MS = 1_000


def _following(number: int) -> int:
    """The next number: none whose lower half is 0, which is no transaction to PostgreSQL."""
    return number + 1 + (not (number + 1) & 0xFFFF_FFFF)


class Numbers:
    """The numbers of one database."""

    def __init__(self, clock: Clock) -> None:
        self._first = self._next = clock.now_ms() * _PER_MS
        #: The number of a session's transaction, of those that are under way.
        self._open: dict[int, int] = {}
        self._ended: OrderedDict[int, bool] = OrderedDict()
        self._latest = self._next - 1

    def of(self, session: int) -> int | None:
        """The number of a session's transaction, if it has asked for one."""
        return self._open.get(session)

    def take(self, session: int) -> int:
        """The number of a session's transaction: a new one, if it has none yet."""
        if session not in self._open:
            self._open[session] = self._next
            self._next = _following(self._next)
        return self._open[session]

    def end(self, session: int, *, committed: bool) -> None:
        """A session's transaction is over."""
        number = self._open.pop(session, None)
        if number is None:
            return
        self._ended[number] = committed
        self._latest = max(self._latest, number)
        while len(self._ended) > KEPT_MAX:
            self._ended.popitem(last=False)

    def snapshot(self) -> Snapshot:
        """What has ended by now."""
        highest = _following(self._latest)
        under_way = tuple(sorted(number for number in self._open.values() if number < highest))
        return Snapshot(min([*self._open.values(), highest]), highest, under_way)

    def status(self, number: int) -> str | None:
        """What became of a transaction; None where that is not known any more.

        Raises:
            InvalidArgument: there has been none of that number.
        """
        if number in self._open.values():
            return "in progress"
        if number >= self._next:
            raise InvalidArgument(f"transaction ID {number} is in the future")
        found = self._ended.get(number)
        return None if found is None else "committed" if found else "aborted"


def about_numbers(session: AdapterSession) -> list[Function]:
    """The functions of this session's transaction."""

    def numbers() -> Numbers:
        return session.database.numbers

    def take() -> int:
        current(session)  # of statements that were sent as one, there is one transaction
        return numbers().take(session.id)

    def of_xid(number: bytes) -> int:
        return int.from_bytes(number, "big")

    def xid(number: int | None) -> bytes | None:
        return None if number is None else number.to_bytes(8, "big")

    big = t.BigInt()
    return [
        # Volatile: asked while the statement runs, whose end is the end of its transaction.
        ask("pg_current_xact_id", (), Xid8(), lambda: xid(take()), volatile=True),
        ask("pg_current_xact_id_if_assigned", (), Xid8(), lambda: xid(numbers().of(session.id)),
            volatile=True),
        ask("txid_current", (), big, take, volatile=True),
        ask("txid_current_if_assigned", (), big, lambda: numbers().of(session.id),
            volatile=True),
        ask("pg_current_snapshot", (), PgSnapshot(), lambda: numbers().snapshot().value),
        ask("txid_current_snapshot", (), TxidSnapshot(), lambda: numbers().snapshot().value),
        ask("pg_xact_status", (Xid8,), t.Text(), lambda number: numbers().status(of_xid(number)),
            fallible=True),
        ask("txid_status", (t.BigInt,), t.Text(), lambda number: numbers().status(number),
            fallible=True),
    ]  # fmt: skip
