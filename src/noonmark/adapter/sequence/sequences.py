"""Which numbers of sequences were given out: in memory at once, durable by reserved ranges.

Law (once): a number that a client has seen, or that a durable row has, is never given out again,
also not after kill -9, unless `setval`, RESTART or CYCLE asks for it. It holds because `settle`
comes between giving a number out and showing it: before rows are committed (`table.committer`) and
before a statement answers (`session`).

Law (gaps): what is durable is the end of a reserved range. A process that is killed loses the rest
of the range, at most `RESERVED` numbers of a sequence; one that ends properly loses none.

A transaction that is rolled back does not take numbers back: nobody waits for another's COMMIT.

Where it runs: `next_value` and the like wherever scalars are evaluated, a thread among them;
`settle` on the adapter's loop. The stored collection is small: a row for each state.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.timestamp.oracle import Times
from noonmark.errors import NumberTooLarge, ReadOnly, UsageError
from noonmark.persist.client import Client
from noonmark.rows.schema import Schema
from noonmark.storage.description import CollectionDescription
from noonmark.storage.transaction import Transaction, creation, own_capability
from noonmark.tvc import Antichain, Update

COLLECTION = "noonmark_sequences"
SCHEMA = Schema.of(state="text not null", value="bigint not null", called="boolean not null")
#: How many numbers are reserved beyond those that were given out; PostgreSQL's own figure.
RESERVED = 32
#: How much history of them is kept.
_RETAIN_MS = 600_000

Row = tuple[str, int, bool]


class SequenceLimit(UsageError, id="sequence_limit", sqlstate="2200H"):
    """A sequence without CYCLE is at its end."""


@dataclass
class _State:
    """Where a sequence stands, and up to where numbers may be given out without more."""

    value: int
    called: bool
    reserved: int | None = None


class Sequences:
    """See the module."""

    def __init__(self, client: Client, times: Times, *, read_only: bool = False) -> None:
        self._client = client
        self._times = times
        self._read_only = read_only
        self._states: dict[str, _State] = {}
        #: States with numbers given out beyond what is stored, and what is to be stored for each.
        self._wanted: dict[str, Row] = {}
        self._stored: dict[str, Row] = {}
        self._guard = threading.Lock()
        self._turn = asyncio.Lock()
        self._loaded_at: Any = None

    # -- numbers ---------------------------------------------------------------------------------

    def next_value(self, item: Item) -> int:
        """The next number of a sequence.

        Raises:
            SequenceLimit: there is none.
        """
        self._check_writer("nextval")
        with self._guard:
            state, has = self._state(item), item.definition
            value = _after(item, state) if state.called else state.value
            if (value < state.value) == (has["increment"] > 0) and value != state.value:
                state.reserved = None  # it begins again
            state.value, state.called = value, True
            if not _covers(state.reserved, value, has["increment"]):
                self._wanted[has["state"]] = (has["state"], _ahead(value, has), True)
        return value

    def set_value(self, item: Item, value: int, called: bool = True) -> int:
        """Make a number the last one that was given out, or the next one.

        Raises:
            NumberTooLarge: it is beyond the bounds of the sequence.
        """
        self._check_writer("setval")
        has = item.definition
        if not has["min"] <= value <= has["max"]:
            raise NumberTooLarge(
                f'setval: value {value} is out of bounds for sequence "{item.name}" '
                f"({has['min']}..{has['max']})"
            )
        with self._guard:
            state = self._state(item)
            state.value, state.called, state.reserved = value, called, None
            self._wanted[has["state"]] = (has["state"], value, called)
        return value

    def last(self, item: Item) -> tuple[int, bool]:
        """Where a sequence stands: a number, and whether that was given out."""
        if self._read_only:
            self.load()
        with self._guard:
            state = self._state(item)
            return state.value, state.called

    def _state(self, item: Item) -> _State:
        name = item.definition["state"]
        found = self._states.get(name)
        if found is None:
            found = self._states[name] = _State(item.definition["first"], False)
        return found

    def _check_writer(self, function: str) -> None:
        if self._read_only:
            raise ReadOnly(f"cannot execute {function}() in a read-only server")

    # -- what is stored --------------------------------------------------------------------------

    def load(self) -> None:
        """Read what is stored. Blocks."""
        client = self._client
        if COLLECTION not in client.state.names:
            return
        read = client.create_or_load(COLLECTION)[1]
        upper = read.upper.only()
        assert upper is not None, "it is never closed"
        if read.since == read.upper or self._loaded_at == upper:
            return
        rows: list[Row] = read.snapshot(upper - 1).result().rows()
        self._stored = {row[0]: row for row in rows}
        self._states = {row[0]: _State(row[1], row[2], row[1]) for row in rows}
        self._loaded_at = upper

    async def settle(self) -> None:
        """Return when no number that was given out can be given out again after a crash."""
        while self._wanted:
            async with self._turn:
                with self._guard:
                    wanted, self._wanted = self._wanted, {}
                if wanted:
                    await self._store(list(wanted.values()))

    async def close(self) -> None:
        """Give back what was reserved: the next process goes on without a gap."""
        with self._guard:
            exact = {
                name: (name, state.value, state.called)
                for name, state in self._states.items()
                if name in self._stored and self._stored[name] != (name, state.value, state.called)
            }
            if not self._read_only:
                self._wanted |= exact
        await self.settle()

    async def _store(self, rows: list[Row]) -> None:
        try:
            await self._commit(rows)
        except BaseException:
            with self._guard:  # who asks next tries again
                self._wanted = {row[0]: row for row in rows} | self._wanted
            raise
        with self._guard:
            for row in rows:
                if row[0] not in self._wanted:  # nobody moved it meanwhile
                    self._states[row[0]].reserved = row[1] if row[2] else None

    async def _commit(self, rows: list[Row]) -> None:
        client = self._client
        if COLLECTION not in client.state.names:
            description = CollectionDescription(SCHEMA, ("state",), "sequences")
            create = creation(COLLECTION, description, await self._times.write_ts())
            await asyncio.wrap_future(client.submit((create,)))
        time = await self._times.write_ts()
        stored = self._stored
        old = [Update(stored[row[0]], time, -1) for row in rows if row[0] in stored]
        transaction, state = Transaction(client), client.state
        updates = [*old, *(Update(row, time, 1) for row in rows)]
        transaction.update_and_downgrade(own_capability(state, COLLECTION), updates, time + 1)
        transaction.let_history_go(state.names[COLLECTION], Antichain.of(max(0, time - _RETAIN_MS)))
        await transaction.decide(patient=True)
        self._stored |= {row[0]: row for row in rows}


def _after(item: Item, state: _State) -> int:
    has = item.definition
    value: int = state.value + has["increment"]
    if has["increment"] > 0:
        over, word, bound, again = value > has["max"], "maximum", has["max"], has["min"]
    else:
        over, word, bound, again = value < has["min"], "minimum", has["min"], has["max"]
    if not over:
        return value
    if has["cycle"]:
        return int(again)
    raise SequenceLimit(f'nextval: reached {word} value of sequence "{item.name}" ({bound})')


def _covers(reserved: int | None, value: int, increment: int) -> bool:
    if reserved is None:
        return False
    return value <= reserved if increment > 0 else value >= reserved


def _ahead(value: int, has: Any) -> int:
    """The end of a range that begins at a number."""
    step: int = has["increment"]
    room: int = (has["max"] - value) // step if step > 0 else (value - has["min"]) // -step
    return value + step * min(RESERVED, max(0, room))
