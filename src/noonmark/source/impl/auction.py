"""LOAD GENERATOR AUCTION: an auction house in five tables, with inserts, updates and deletes.

Offset 0 is the house as it opens: organizations, their users and accounts. Every later offset is
one step, and one transaction. Step i, counted from 0:

- a bid, number i + 1, on the auction that is open;
- account ``i % ACCOUNTS`` gets another balance;
- if i is a multiple of `BIDS`, a new auction opens first; a user moves to another organization;
  and the auction that opened `keep` auctions ago is deleted with all its bids.

Each value is a pure function of the seed, the row's key and how often it was written, so a step can
retract what some step long ago inserted.

Law: after any step every bid has its auction, every auction and bid its user, every user and
account its organization; and there are at most `keep` auctions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source.contract import Output, Split
from noonmark.source.impl.chance import Longs, again, below, between, draw
from noonmark.source.impl.columns import numbered, pick
from noonmark.source.impl.generator import Generator
from noonmark.tvc import Partition

ORGANIZATIONS, USERS, ACCOUNTS, BIDS = 100, 1_000, 100, 10

_OUTPUTS = (
    Output("organizations", Schema.of(id="bigint not null", name="text not null"), ("id",)),
    Output(
        "users",
        Schema.of(id="bigint not null", org_id="bigint not null", name="text not null"),
        ("id",),
    ),
    Output(
        "accounts",
        Schema.of(id="bigint not null", org_id="bigint not null", balance="bigint not null"),
        ("id",),
    ),
    Output(
        "auctions",
        Schema.of(
            id="bigint not null",
            seller="bigint not null",
            item="text not null",
            end_time="timestamp with time zone not null",
        ),
        ("id",),
    ),
    Output(
        "bids",
        Schema.of(
            id="bigint not null",
            buyer="bigint not null",
            auction_id="bigint not null",
            amount="integer not null",
            bid_time="timestamp with time zone not null",
        ),
        ("id",),
    ),
)
_ORGANIZATIONS, _USERS, _ACCOUNTS, _AUCTIONS, _BIDS = range(5)
_COUNTS = {_ORGANIZATIONS: ORGANIZATIONS, _USERS: USERS, _ACCOUNTS: ACCOUNTS}
_ITEMS = pa.array(
    ["Best Pizza in Town", "City Bar Crawl", "Custom Art", "Gift Basket", "Signed Memorabilia"]
)
_OPEN_MS = 10_000

Columns = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Auction(Generator):
    """See the module."""

    keep: int = 1_000
    steps_per_tick: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep < 1 or self.steps_per_tick < 1:
            raise ConfigError("an auction house keeps an auction and takes a step, at least")

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return _OUTPUTS

    def reached(self, ticks: int) -> dict[Partition, int]:
        """The first tick opens the house; every other takes its steps."""
        return {0: 1 + (ticks - 1) * self.steps_per_tick if ticks else 0}

    def rows_per_offset(self) -> int:
        """A bid in, a bid out, an account changed, and a tenth of the rest."""
        return 5

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        for start, stop in self.steps(split):
            if start == 0:
                yield from self._opening(split)
            steps = np.arange(max(start, 1), stop) - 1
            if len(steps):
                yield from self._steps(split, steps)

    def _opening(self, split: Split) -> Iterator[pa.RecordBatch]:
        for number, columns in (
            (_ORGANIZATIONS, self._organizations),
            (_USERS, self._users),
            (_ACCOUNTS, self._accounts),
        ):
            ids = np.arange(_COUNTS[number])
            versions = np.zeros_like(ids)
            data = {"_diff": versions + 1, **columns(ids, versions)}
            yield self.batch(number, split.partition, versions, data)

    def _steps(self, split: Split, steps: Longs) -> Iterator[pa.RecordBatch]:
        opening = steps[steps % BIDS == 0] // BIDS
        closed = opening - self.keep
        closing = closed >= 0
        at = opening * BIDS + 1
        yield self._changes(split, _USERS, self._users, at, opening)
        yield self._changes(split, _ACCOUNTS, self._accounts, steps + 1, steps)
        yield self._turnover(
            split, _AUCTIONS, self._auctions, (at, opening), (at[closing], closed[closing])
        )
        gone = (closed[closing][:, None] * BIDS + np.arange(BIDS)).ravel()
        yield self._turnover(
            split, _BIDS, self._bids, (steps + 1, steps), (np.repeat(at[closing], BIDS), gone)
        )

    def _changes(
        self,
        split: Split,
        number: int,
        columns: Callable[[Longs, Longs], Columns],
        offsets: Longs,
        nth: Longs,
    ) -> pa.RecordBatch:
        """The nth change of a table is to row ``nth % count``: its next version replaces one."""
        count = _COUNTS[number]
        versions = np.stack([nth // count, nth // count + 1], axis=1).ravel()
        diffs = np.tile([-1, 1], len(nth))
        data = {"_diff": diffs, **columns(np.repeat(nth % count, 2), versions)}
        return self.batch(number, split.partition, np.repeat(offsets, 2), data)

    def _turnover(
        self,
        split: Split,
        number: int,
        columns: Callable[[Longs], Columns],
        inserted: tuple[Longs, Longs],
        deleted: tuple[Longs, Longs],
    ) -> pa.RecordBatch:
        """Rows by id that come and go, each with its offset, in order of offset."""
        offsets = np.concatenate([inserted[0], deleted[0]])
        ids = np.concatenate([inserted[1], deleted[1]])
        diffs = np.repeat([1, -1], [len(inserted[1]), len(deleted[1])])
        order = np.argsort(offsets, kind="stable")
        data = {"_diff": diffs[order], **columns(ids[order])}
        return self.batch(number, split.partition, offsets[order], data)

    def _organizations(self, ids: Longs, _: Longs) -> Columns:
        return {"id": ids + 1, "name": numbered("Organization ###", ids + 1)}

    def _users(self, ids: Longs, versions: Longs) -> Columns:
        organization = below(draw(self.seed, _USERS, ids, versions), ORGANIZATIONS) + 1
        return {"id": ids + 1, "org_id": organization, "name": numbered("User ####", ids + 1)}

    def _accounts(self, ids: Longs, versions: Longs) -> Columns:
        balance = below(draw(self.seed, _ACCOUNTS, ids, versions), 10_000)
        return {"id": ids + 1, "org_id": ids % ORGANIZATIONS + 1, "balance": balance}

    def _auctions(self, ids: Longs) -> Columns:
        bits = draw(self.seed, _AUCTIONS, ids)
        return {
            "id": ids + 1,
            "seller": below(bits, USERS) + 1,
            "item": pick(_ITEMS, below(again(bits, 1), len(_ITEMS))),
            "end_time": self._when(ids * BIDS + 1, _OPEN_MS),
        }

    def _bids(self, ids: Longs) -> Columns:
        bits = draw(self.seed, _BIDS, ids)
        return {
            "id": ids + 1,
            "buyer": below(bits, USERS) + 1,
            "auction_id": ids // BIDS + 1,
            "amount": between(again(bits, 1), 1, 100).astype(np.int32),
            "bid_time": self._when(ids + 1, 0),
        }

    def _when(self, offsets: Longs, later_ms: int) -> pa.Array:
        """The instant at which an offset became complete."""
        tick = (offsets - 1) // self.steps_per_tick + 1
        instants = self.start_ms + tick * self.tick_ms + later_ms
        return pa.array(instants * 1000).view(pa.timestamp("us", "UTC"))
