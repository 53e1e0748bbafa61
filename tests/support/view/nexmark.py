"""Nexmark for tests: the queries, the schemas, and an auction house whose events come and go.

An event is a person who comes, an auction that opens, or a bid: of fifty events one, three and
forty-six. Events are `EVENT_MS` of event time apart, and some are late. `House.change` makes the
updates of one time: new events; and, which the benchmark does not have, bids that are withdrawn,
auctions that are prolonged and persons who move.
"""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark.rows.arrow import to_table
from noonmark.rows.schema import Schema
from support.view.tpch_changes import updates

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "nexmark"
QUERIES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
SCHEMAS = {
    "person": Schema.of(
        id="bigint not null",
        name="text",
        email="text",
        city="text",
        state="text",
        date_time="timestamp",
        extra="text",
    ),
    "auction": Schema.of(
        id="bigint not null",
        item_name="text",
        initial_bid="bigint",
        reserve="bigint",
        date_time="timestamp",
        expires="timestamp",
        seller="bigint",
        category="bigint",
        extra="text",
    ),
    "bid": Schema.of(
        auction="bigint",
        bidder="bigint",
        price="bigint",
        channel="text",
        url="text",
        date_time="timestamp",
        extra="text",
    ),
}
KEYS: dict[str, tuple[str, ...]] = {"person": ("id",), "auction": ("id",), "bid": ("auction",)}
EVENT_MS = 100
LATE_MS = 20_000

_CHANNELS = ("Apple", "Google", "Facebook", "Baidu", "channel-1", "channel-2")
_CITIES = (("Portland", "OR"), ("Boise", "ID"), ("Los Angeles", "CA"), ("Phoenix", "AZ"))
Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]


class House:
    """The contents now, and how they change."""

    def __init__(self, seed: int, events: int) -> None:
        self.chance = random.Random(seed)
        self.clock = 0
        self.rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        self.ids = {"person": 0, "auction": 0}
        self._apply(self._events(events))

    @property
    def now(self) -> dict[str, pa.Table]:
        """The tables."""
        return {name: to_table(rows, SCHEMAS[name]) for name, rows in self.rows.items()}

    def change(self, time: int, events: int) -> dict[str, pa.Table]:
        """The updates of one time: so many events, and one in fifty rows that goes or changes."""
        made = self._events(events)
        self._withdraw(made, max(1, events // 50))
        self._replace(made, "auction", 5, self._moment(0))
        self._replace(made, "person", 4, self.chance.choice(_CITIES)[1])
        self._apply(made)
        return {
            name: pa.concat_tables(
                updates(to_table([row for row, n in rows if n == diff], SCHEMAS[name]), time, diff)
                for diff in (-1, 1)
            )
            for name, rows in made.items()
        }

    def _apply(self, changes: Changes) -> None:
        for name, rows in changes.items():
            for row, diff in rows:
                if diff > 0:
                    self.rows[name].append(row)
                else:
                    self.rows[name].remove(row)

    def _withdraw(self, made: Changes, count: int) -> None:
        bids = self.rows["bid"]
        made["bid"] += [(row, -1) for row in self.chance.sample(bids, min(count, len(bids)))]

    def _replace(self, made: Changes, name: str, at: int, value: Any) -> None:
        if self.rows[name]:
            row = self.chance.choice(self.rows[name])
            made[name] += [(row, -1), ((*row[:at], value, *row[at + 1 :]), 1)]

    # -- events -----------------------------------------------------------------------------

    def _events(self, count: int) -> Changes:
        made: Changes = {name: [] for name in SCHEMAS}
        for _ in range(count):
            self.clock += EVENT_MS
            kind = self.chance.choices(("person", "auction", "bid"), (1, 3, 46))[0]
            if kind == "person" or not self.ids["person"]:
                made["person"].append((self._person(), 1))
            elif kind == "auction" or not self.ids["auction"]:
                made["auction"].append((self._auction(), 1))
            else:
                made["bid"].append((self._bid(), 1))
        return made

    def _moment(self, late_ms: int) -> dt.datetime:
        late = self.chance.randrange(late_ms) if late_ms and self.chance.random() < 0.1 else 0
        # From the evening on, so that histories of every length go past midnight.
        start = dt.datetime(2024, 2, 28, 23, 59)
        return start + dt.timedelta(milliseconds=self.clock - late)

    def _person(self) -> Row:
        number = self._next("person")
        city, state = self.chance.choice(_CITIES)
        name = f"person {number % 13}"
        return number, name, f"{number}@example.com", city, state, self._moment(0), self._extra()

    def _auction(self) -> Row:
        number, opened = self._next("auction"), self._moment(LATE_MS)
        price = self._price()
        closes = opened + dt.timedelta(seconds=self.chance.randrange(1, 60))
        seller, category = self._recent("person"), self.chance.randrange(10, 15)
        return (
            number, f"item {number % 7}", price, price * 2, opened, closes, seller, category,
            self._extra(),
        )  # fmt: skip

    def _bid(self) -> Row:
        channel = self.chance.choice(_CHANNELS)
        number = self.chance.randrange(100)
        known = f"?channel_id={number}&x=1" if channel.startswith("channel") else ""
        url = f"https://www.example.com/a{number % 3}/b{number % 5}/item.htm{known}"
        auction, bidder = self._recent("auction"), self._recent("person")
        price, moment = self._price(), self._moment(LATE_MS)
        return auction, bidder, price, channel, url, moment, self._extra()

    def _next(self, name: str) -> int:
        self.ids[name] += 1
        return self.ids[name]

    def _recent(self, name: str) -> int:
        """One of the last few, most often; now and then one that is not there yet."""
        return max(1, self.ids[name] - int(self.chance.expovariate(0.2)) + 1)

    def _price(self) -> int:
        return int(10 ** self.chance.uniform(2, 8))

    def _extra(self) -> str:
        return "".join(self.chance.choices("abcdef", k=self.chance.randrange(8)))
