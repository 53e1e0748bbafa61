"""Envelopes against plain Python: UPSERT by its law, NONE and DEBEZIUM record by record."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import ConfigError, SchemaMismatch
from noonmark.rows.arrow import from_table
from noonmark.rows.schema import Schema
from noonmark.source.contract import ERRORS_SCHEMA, error_batch
from noonmark.source.envelope import (
    ERRORS,
    Envelope,
    Updates,
    debezium_schema,
    source_errors,
    typed,
)
from noonmark.source.format.decode import Decoding
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json

KEY, VALUE = Schema.of(k="bigint"), Schema.of(v="integer", w="text not null")
DECODING = Decoding(Json(VALUE), Json(KEY), (Include("offset", "o"),))
UPSERT = Envelope("UPSERT", DECODING.schema, ("k",), "out")


class Record(NamedTuple):
    """A raw record with its time."""

    time: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def decoded(decoding: Decoding, records: list[Record]) -> pa.Table:
    raw = pa.record_batch(
        {
            "_partition": pa.array([r.partition for r in records], pa.int64()),
            "_offset": pa.array([r.offset for r in records], pa.int64()),
            "_output": pa.array([0] * len(records), pa.int8()),
            "key": pa.array([r.key for r in records], pa.binary()),
            "value": pa.array([r.value for r in records], pa.binary()),
        }
    )
    times = pa.array([r.time for r in records], pa.int64())
    return pa.Table.from_batches([decoding.decode(raw).append_column("_time", times)])


def counted(table: pa.Table, schema: Schema) -> Counter[Any]:
    """Updates as (time, row) -> diff, zeros left out."""
    found: Counter[Any] = Counter()
    times, diffs = table.column("_time").to_pylist(), table.column("_diff").to_pylist()
    for row, time, diff in zip(from_table(table, schema), times, diffs, strict=True):
        found[(time, row)] += diff
    return Counter({update: diff for update, diff in found.items() if diff})


KEYS = [b'{"k":1}', b'{"k": 2}', b'{"k":1.0}', b'{"k":null}', b"bad", None]
VALUES = [b'{"v":1,"w":"a"}', b'{"v":2,"w":"b"}', b'{"v":1, "w":"a"}', b"broken", b'{"v":3}', None]


@st.composite
def histories(draw: st.DrawFn) -> list[list[Record]]:
    """Ticks of records; times never go back; offsets of a partition ascend, and may repeat."""
    now, ends = 0, [0, 0]
    ticks = []
    for _ in range(draw(st.integers(1, 3))):
        tick = []
        for _ in range(draw(st.integers(0, 8))):
            now += draw(st.integers(0, 1))
            partition = draw(st.integers(0, 1))
            ends[partition] += draw(st.integers(0, 1))
            key = draw(st.sampled_from(KEYS[:2] * 3 + KEYS))
            record = Record(now, partition, ends[partition], key, draw(st.sampled_from(VALUES)))
            tick.append(record)
        ticks.append(tick)
        now += 1
    return ticks


def state(record: Record) -> tuple[str, Any]:
    """What a record with a good key makes of it: nothing, a row or an error."""
    key = json.loads(record.key or b"")["k"]
    meaning = {VALUES[0]: (1, "a"), VALUES[1]: (2, "b"), VALUES[2]: (1, "a")}
    if record.value is None:
        return ("nothing", None)
    if record.value in meaning:
        return ("row", (key, *meaning[record.value], record.offset))
    text = "()" if key is None else f"({key})"
    return ("error", ("out", str(record.partition), record.offset, text, record.value))


def reference(ticks: list[list[Record]]) -> tuple[Counter[Any], Counter[Any]]:
    """The law of UPSERT, read aloud."""
    rows: Counter[Any] = Counter()
    errors: Counter[Any] = Counter()
    now: dict[Any, tuple[str, Any]] = {}
    for tick in ticks:
        for record in tick:
            if record.key not in (KEYS[0], KEYS[1], KEYS[3]):
                lost = ("out", str(record.partition), record.offset, None, record.value)
                errors[(record.time, lost)] += 1
        for time in sorted({record.time for record in tick}):
            last: dict[Any, Record] = {}
            at = [r for r in tick if r.time == time and r.key in (KEYS[0], KEYS[1], KEYS[3])]
            for record in sorted(at, key=lambda r: (r.partition, r.offset)):  # stable
                last[json.loads(record.key or b"")["k"]] = record
            for key, record in last.items():
                for (kind, what), diff in (
                    (now.get(key, ("nothing", None)), -1),
                    (state(record), 1),
                ):
                    if kind == "row":
                        rows[(time, what)] += diff
                    if kind == "error":
                        errors[(time, what)] += diff
                now[key] = state(record)
    return tuple(Counter({u: d for u, d in c.items() if d}) for c in (rows, errors))  # type: ignore[return-value]


def contents(updates: Counter[Any]) -> list[Any]:
    held: Counter[Any] = Counter()
    for (_, row), diff in updates.items():
        held[row] += diff
    assert min(held.values(), default=0) >= 0
    return list(held.elements())


def as_updates(rows: list[Any], errors: list[Any]) -> Updates:
    names = UPSERT.schema.names
    return Updates(
        pa.Table.from_pylist(
            [{**dict(zip(names, row, strict=True)), "_time": 0, "_diff": 1} for row in rows],
            UPSERT.nothing().rows.schema,
        ),
        pa.Table.from_pylist(
            [
                {**dict(zip(ERRORS_SCHEMA.names, row, strict=True)), "_time": 0, "_diff": 1}
                for row in errors
            ],
            ERRORS,
        ),
    )


@given(histories())
@settings(max_examples=200)
def test_upsert(ticks: list[list[Record]]) -> None:
    rows: Counter[Any] = Counter()
    errors: Counter[Any] = Counter()
    for tick in ticks:
        # Everything that is held, touched or not: more than a look-up by key would give.
        previous = as_updates(contents(rows), contents(errors))
        made = UPSERT.apply(decoded(DECODING, tick), previous)
        rows.update(counted(made.rows, UPSERT.schema))
        errors.update(counted(made.errors, ERRORS_SCHEMA))
    held = contents(rows)
    assert len({row[0] for row in held}) == len(held), "a key has one row"
    expected_rows, expected_errors = reference(ticks)
    assert Counter({u: d for u, d in rows.items() if d}) == expected_rows
    plain: Counter[Any] = Counter()
    for (time, row), diff in errors.items():
        assert row[5], "an error has a reason"
        plain[(time, row[:5])] += diff
    assert Counter({u: d for u, d in plain.items() if d}) == expected_errors


@given(histories())
def test_all_ticks_at_once_give_the_same(ticks: list[list[Record]]) -> None:
    whole = [record for tick in ticks for record in tick]
    at_once = UPSERT.apply(decoded(DECODING, whole))
    assert counted(at_once.rows, UPSERT.schema) == reference(ticks)[0]


def test_a_good_value_retracts_the_error_of_its_key() -> None:
    bad = UPSERT.apply(decoded(DECODING, [Record(1, 0, 0, KEYS[0], b"oops")]))
    assert bad.rows.num_rows == 0
    assert bad.errors.column("key").to_pylist() == ["(1)"]
    assert bad.errors.column("value").to_pylist() == [b"oops"]
    good = UPSERT.apply(decoded(DECODING, [Record(2, 0, 1, b'{"k":  1}', VALUES[0])]), bad)
    assert counted(good.rows, UPSERT.schema) == {(2, (1, 1, "a", 1)): 1}
    [((time, row), diff)] = counted(good.errors, ERRORS_SCHEMA).items()
    assert (time, row[2], diff) == (2, 0, -1)


def test_an_error_of_another_output_stays() -> None:
    bad = UPSERT.apply(decoded(DECODING, [Record(1, 0, 0, KEYS[0], b"oops")]))
    other = Envelope("UPSERT", DECODING.schema, ("k",), "other")
    good = other.apply(decoded(DECODING, [Record(2, 0, 1, KEYS[0], VALUES[0])]), bad)
    assert good.errors.num_rows == 0


@given(histories())
def test_none(ticks: list[list[Record]]) -> None:
    records = [record._replace(key=None) for tick in ticks for record in tick]
    envelope = Envelope("NONE", VALUE, output="out")
    made = envelope.apply(decoded(Decoding(Json(VALUE)), records))
    meaning = {VALUES[0]: (1, "a"), VALUES[1]: (2, "b"), VALUES[2]: (1, "a")}
    good = Counter((r.time, meaning[r.value]) for r in records if r.value in meaning)
    assert counted(made.rows, VALUE) == good
    bad = Counter((r.time, str(r.partition), r.offset) for r in records if r.value not in meaning)
    found = counted(made.errors, ERRORS_SCHEMA)
    assert Counter({(t, row[1], row[2]): 0 for t, row in found}) == Counter(dict.fromkeys(bad, 0))
    assert sum(found.values()) == sum(bad.values())


def test_none_takes_a_tombstone_for_an_error() -> None:
    made = Envelope("NONE", VALUE).apply(
        decoded(Decoding(Json(VALUE)), [Record(1, 0, 0, None, None)])
    )
    assert made.errors.column("reason").to_pylist() == ["the record has no value"]


def test_none_keeps_duplicates() -> None:
    twice = [Record(1, 0, n, None, VALUES[0]) for n in range(2)]
    made = Envelope("NONE", VALUE).apply(decoded(Decoding(Json(VALUE)), twice))
    assert counted(made.rows, VALUE) == {(1, (1, "a")): 2}


ROW = Schema.of(id="bigint not null", name="text")


def change(before: Any, after: Any, op: str = "u") -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "source": {"lsn": 1}}


@pytest.mark.parametrize("wrap", [False, True])
def test_debezium(wrap: bool) -> None:
    one, two = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    documents = [
        change(None, one, "c"),
        change(one, two),
        change(two, None, "d"),
        change(None, two, "r"),
        change(None, two, "u"),
        change(None, None, "t"),
        change(None, {"name": "x"}, "c"),
        change(None, {"id": "x"}, "c"),
    ]
    values = [json.dumps({"payload": d} if wrap else d).encode() for d in documents]
    records = [Record(n, 0, n, None, value) for n, value in enumerate(values)]
    records += [Record(8, 0, 8, None, None), Record(9, 0, 9, None, b"broken")]
    decoding = Decoding(Json(debezium_schema(ROW)), keep_raw=True)
    made = Envelope("DEBEZIUM", ROW, output="t").apply(decoded(decoding, records))
    assert counted(made.rows, ROW) == {
        (0, (1, "a")): 1,
        (1, (1, "a")): -1,
        (1, (1, "b")): 1,
        (2, (1, "b")): -1,
        (3, (1, "b")): 1,
    }
    reasons = {row[2]: row[5] for _, row in counted(made.errors, ERRORS_SCHEMA)}
    assert sorted(reasons) == [4, 5, 6, 7, 9]
    assert "REPLICA IDENTITY FULL" in reasons[4]
    assert reasons[5] == "neither before nor after"
    assert reasons[6] == 'column "id": NULL in after, and it is NOT NULL'
    assert all(row[4] for _, row in counted(made.errors, ERRORS_SCHEMA)), "the bytes are kept"


def test_typed_records_have_their_diffs_already() -> None:
    records = pa.table(
        {"_partition": [0, 0], "_offset": [1, 1], "_output": [0, 0], "_diff": [-1, 1], "n": [1, 2]}
    ).append_column("_time", pa.array([5, 5], pa.int64()))
    schema = Schema.of(n="bigint")
    assert counted(typed(schema, records), schema) == {(5, (1,)): -1, (5, (2,)): 1}


def test_errors_of_the_source_itself() -> None:
    batch = error_batch("name", "file", [(8, None, b"x", "gone")]).append_column(
        "_time", pa.array([5], pa.int64())
    )
    made = source_errors(pa.Table.from_batches([batch]), None, offset_unit=4)
    assert counted(made, ERRORS_SCHEMA) == {(5, (None, "file", 2, None, b"x", "gone")): 1}


@pytest.mark.parametrize("kind", ["NONE", "UPSERT"])
def test_no_records_no_updates(kind: Any) -> None:
    key = ("k",) if kind == "UPSERT" else ()
    made = Envelope(kind, DECODING.schema, key).apply(decoded(DECODING, []))
    assert (made.rows.num_rows, made.errors.num_rows) == (0, 0)


def test_upsert_needs_a_key_that_exists() -> None:
    with pytest.raises(ConfigError, match="needs a key"):
        Envelope("UPSERT", VALUE)
    with pytest.raises(SchemaMismatch):
        Envelope("UPSERT", VALUE, ("missing",))
