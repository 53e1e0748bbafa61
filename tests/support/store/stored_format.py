"""A small location with one of everything that persist stores, and its contents as text.

Run as a script (``python tests/support/store/stored_format.py``) it keeps one for the format
version that the code writes now, under ``tests/location/format-N``: the location, and
``expected.txt`` with what every later version must read there. A kept location is never written
again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from noonmark import persist
from noonmark.clock import SYSTEM, format_id
from noonmark.errors import DefiniteError
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import Failure
from noonmark.persist.log.frame import FORMAT_VERSION
from noonmark.persist.log.state import Collection, State
from noonmark.persist.part.run import DIFF
from noonmark.rows.pg.text import format_value, parse_value
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from noonmark.tvc import EMPTY, Antichain

KEPT = Path(__file__).parents[2] / "location"
NO_LEASE_MS = 2**62

ORDERS = Schema.of(id="bigint not null", item="text")
PRICE = Column("price", parse_type("numeric(10,2)"))
TYPES = Schema.of(
    flag="boolean",
    small="smallint",
    whole="integer",
    big="bigint",
    single="real",
    double="double precision",
    exact="numeric(10,2)",
    plain="numeric",
    words="text",
    short="varchar(8)",
    fixed="char(4)",
    raw="bytea",
    day="date",
    clock="time",
    stamp="timestamp",
    instant="timestamptz",
    span="interval",
    ident="uuid",
    doc="jsonb",
    list="integer[]",
    pair="record(a integer, b text)",
)
_VALUES: tuple[tuple[str | None, ...], ...] = (
    ("t", "1", "2", "3", "1.5", "2.5", "3.14", "2.718281828", "words", "short", "abcd", "\\x00ff",
     "2024-02-29", "12:34:56.789", "2024-02-29 12:34:56", "2024-02-29 12:34:56+00",
     "1 year 2 mons 3 days 04:05:06", "12345678-9abc-def0-1234-56789abcdef0",
     '{"a": [1, 2.50, null]}', "{1,NULL,3}", "(7,seven)"),
    ("f", "-32768", "-2147483648", "-9223372036854775808", "-Infinity", "NaN", "-99999999.99",
     "-0.000000000000000001", "", "", "", "\\x", "0001-01-01", "00:00:00", "infinity", "-infinity",
     "-1 mons", "00000000-0000-0000-0000-000000000000", "[]", "{}", "(,)"),
    ("t", "32767", "2147483647", "9223372036854775807", "-0", "Infinity", "99999999.99",
     "99999999999999999999", 'q"\\\n\té☃', "\u00e9\u00e9", "é", "\\xdeadbeef", "9999-12-31",
     "23:59:59.999999", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999+00",
     "-1 days +00:00:00.000001", "ffffffff-ffff-ffff-ffff-ffffffffffff", '"text"', "{-1}",
     '(-1,"a,b")'),
    (None,) * len(TYPES.columns),
)  # fmt: skip


class _SteadyClock:
    """Times and ids of its own, so that what is kept says nothing of where it was written."""

    def __init__(self) -> None:
        self._now_ms = 1_700_000_000_000
        self._random = Random(1)

    def now_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms

    def monotonic(self) -> float:
        return SYSTEM.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def random(self) -> float:
        return self._random.random()

    def fresh_id(self) -> str:
        return format_id(self.now_ms(), self._random.getrandbits(80))


def write_location(folder: Path) -> None:
    """Write the location. Every command that the log can hold is in it, or in its rollup."""
    clock = _SteadyClock()
    with mock.patch("socket.gethostname", return_value="example"):
        with _open(folder, clock, inline_bytes_max=1_000) as client:
            _write_orders(client)
            _write_types(client, [10], 3)
            _roll_up(client)
        with _open(folder, clock, inline_bytes_max=4_000) as client:
            _write_types(client, [1, 2], 1)
            _write_others(client)
            _roll_up(client)
            write, _ = client.create_or_load("orders")
            write.write([_order(9, "after the rollup", "0.10", time=30)])
            types, _ = client.create_or_load("types")
            client.atomic().seal(write, 31).seal(types, 11).commit().result(30)
    (folder / "writer.lock").unlink()


def _open(folder: Path, clock: _SteadyClock, inline_bytes_max: int) -> persist.Client:
    """A writer that does only what it is told."""
    config = persist.Config(inline_bytes_max=inline_bytes_max, part_rows_max=40, merge_fan_in=1_000)
    options = persist.Options(notify_host=None, config=config)
    return persist.open(folder, options=options, clock=clock)


def _roll_up(client: persist.Client) -> None:
    client.runtime.submit(client.journal.write_rollup()).result(30)


def _order(id_: int, item: str, price: str | None, *, time: int, diff: int = 1) -> persist.Update:
    data = (id_, item, None if price is None else parse_value(price, PRICE.type))
    return persist.Update(data, time, diff)


def _write_orders(client: persist.Client) -> None:
    """Parts, inline batches, retractions, two schemas, compaction, a since that moved."""
    write, _ = client.create_or_load("orders", ORDERS, ("id",))
    write.write([persist.Update((n, f"item {n}"), 1 + n % 3, 1) for n in range(100)])
    write.write([persist.Update((n, f"item {n}"), 5, -1) for n in range(0, 100, 10)])
    write.seal(6).result(30)
    write.allow_compaction(2).result(30)
    client.compact("orders").result(30)
    client.evolve("orders", (PRICE,)).result(30)
    write, _ = client.create_or_load("orders")
    write.write([_order(n, "priced", f"{n}.99", time=7) for n in range(100, 160)])
    write.write([_order(1, "item 1", None, time=8, diff=-1), _order(1, "item 1", "5.00", time=8)])
    write.write([_order(2, "item 2", None, time=9, diff=2)])
    write.seal(20).result(30)
    reader = c.Acquire("reader", write.collection, Antichain.of(4), NO_LEASE_MS, 1, "example/1")
    client.submit((reader,)).result(30)
    write.allow_compaction(12).result(30)


def _write_types(client: persist.Client, times: Sequence[int], diff: int) -> None:
    """Every SQL type, with its extremes: one batch for each of the times."""
    write, _ = client.create_or_load("types", TYPES)
    rows = [
        tuple(
            None if text is None else parse_value(text, column.type)
            for text, column in zip(texts, TYPES.columns, strict=True)
        )
        for texts in _VALUES
    ]
    for time in times:
        write.write([persist.Update(row, time, diff) for row in rows]).result(30)


def _write_others(client: persist.Client) -> None:
    """Collections in every other stage of life: unsealed, sealed for ever, closed, gone."""
    row = persist.Update((1, "x"), 5, 1)
    pending, _ = client.create_or_load("pending", ORDERS, ("id",), frontier=5)
    pending.write([row, persist.Update((2, "y"), 6, 1)]).result(30)
    writer = c.Acquire(
        "writer", pending.collection, Antichain.of(5), NO_LEASE_MS, 1, "example/1", writes=True
    )
    client.submit((writer,)).result(30)
    final, _ = client.create_or_load("final", ORDERS, ("id",))
    final.write([row]).result(30)
    final.seal(EMPTY).result(30)
    closed, _ = client.create_or_load("closed", ORDERS, ("id",))
    closed.write([persist.Update((n, "x" * 20), 1, 1) for n in range(120)]).result(30)
    client.atomic().seal(closed, EMPTY).allow_compaction(closed, EMPTY).commit().result(30)
    client.create_or_load("gone", ORDERS)
    client.drop("gone").result(30)
    failed, _ = client.create_or_load("failed", ORDERS, ("id",))
    failure = Failure("55000", "its upstream is gone", "A detail.", "A hint.", "failed")
    for time, error in ((3, failure), (6, None), (9, failure)):
        txn = client.atomic().add(c.SetError(failed.collection, time, error))
        txn.write(failed, [persist.Update((time, "x"), time, 1)]).seal(failed, time + 1)
        txn.commit().result(30)
    described, _ = client.create_or_load("described", ORDERS)
    client.submit((c.Annotate(described.collection, b"\x00note\xff"),)).result(30)
    client.submit((c.Rename(described.collection, "renamed"),)).result(30)


def describe(client: persist.Client) -> str:
    """The whole of a location as text: what is in it at every readable time, and who holds what."""
    state = client.state
    lines = [f"next collection {state.next_collection}"]
    for collection in sorted(state.collections.values(), key=lambda each: each.id):
        lines += _describe_collection(client, collection)
    lines += _describe_holds(state)
    return "\n".join(lines) + "\n"


def _describe_collection(client: persist.Client, collection: Collection) -> list[str]:
    lines = ["", f'collection {collection.id} "{collection.name}" key {list(collection.key)}']
    lines += [f"schema {collection.schema_at(at)}" for at in range(len(collection.schemas))]
    lines.append(f"annotation {collection.annotation!r}")
    since, upper = collection.since.only(), collection.upper.only()
    lines.append(f"since {since} upper {upper}")
    lines += [f"error {each}" for each in collection.errors]
    if since is not None and since != upper:
        _, read = client.create_or_load(collection.name)
        lines += [f"as of {since}", *contents(read, since)]
        lines += [f"after {since}", *_updates_after(read, since, collection)]
    return lines


def contents(read: persist.ReadHandle, as_of: int, **query: Any) -> list[str]:
    """The contents at one time, a line for each different row."""
    table = read.snapshot(as_of, **query).result(30).to_arrow()
    rows = read.codec.decode(table.drop_columns([DIFF]))
    counts: Counter[str] = Counter()
    for row, diff in zip(rows, table.column(DIFF).to_pylist(), strict=True):
        counts[_text(row, read.codec.schema)] += diff
    return [f"  {count:+d} {text}" for text, count in sorted(counts.items()) if count]


def _updates_after(read: persist.ReadHandle, time: int, collection: Collection) -> list[str]:
    counts: Counter[tuple[int, str]] = Counter()
    try:
        for step in read.listen(time, hold=False):
            for update in step.updates:
                counts[update.time, _text(update.data, read.codec.schema)] += update.diff
            if step.progress == collection.upper:
                break
    except DefiniteError as error:
        counts[error.fields["time"], error.message] += 1
    return [f"  {time} {count:+d} {text}" for (time, text), count in sorted(counts.items())]


def _text(row: tuple[Any, ...], schema: Schema) -> str:
    pairs = zip(row, schema.columns, strict=True)
    texts = [None if value is None else format_value(value, column.type) for value, column in pairs]
    return json.dumps(texts, ensure_ascii=False)


def _describe_holds(state: State) -> list[str]:
    holds = sorted(state.holds.values(), key=lambda each: each.id)
    return [
        "",
        *(
            f"hold {hold.id} to {'write' if hold.writes else 'read'} {hold.collection} "
            f"at {list(hold.frontier.elements)} until {hold.expires_ms} by {hold.owner}"
            for hold in holds
        ),
    ]


def kept(version: int) -> Path:
    """Where the location of a format version is kept, with what is expected of it."""
    return KEPT / f"format-{version}"


def main() -> None:
    """Keep a location of the format that is written now."""
    folder = kept(FORMAT_VERSION)
    if folder.exists():
        sys.exit(f"{folder} is kept already")
    write_location(folder / "data")
    with persist.open(folder / "data", options=persist.Options(mode="independent")) as client:
        (folder / "expected.txt").write_text(describe(client))


if __name__ == "__main__":
    main()
