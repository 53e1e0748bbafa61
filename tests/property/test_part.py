"""The laws of ``noonmark.persist.part.part``: the same rows or `Corrupt`; pruning loses no row."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import Corrupt
from noonmark.persist.part import part as part_module
from noonmark.persist.part.part import Part, decode_part, encode_part
from noonmark.persist.part.run import sort
from noonmark.persist.part.statistics import physical
from noonmark.persist.part.thrift import decode_struct, encode_struct
from support.store.update_tables import data_names, rows_of, update_table, update_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def encode(table: pa.Table, key: tuple[str, ...] = ("c0",)) -> tuple[Part, bytes]:
    return encode_part(sort(table, key), blob_key="parts/one", key_columns=key)


def numbers(rows: int) -> pa.Table:
    return pa.table(
        {
            "k": range(rows),
            "s": [None if at % 3 == 0 else f"row {at}" for at in range(rows)],
            "_time": [7] * rows,
            "_diff": [1] * rows,
        }
    )


@given(update_tables(rows_min=1))
def test_round_trip(table: pa.Table) -> None:
    run = sort(table, ("c0",))
    if not run.num_rows:
        return
    part, data = encode(table)
    back = decode_part(data, part)
    assert rows_of(back) == rows_of(run)
    assert back.schema == run.schema
    assert rows_of(decode_part(data, part, ["_diff", "c0"])) == rows_of(run, ["_diff", "c0"])


@given(update_tables(rows_min=1))
def test_what_a_part_says_of_itself(table: pa.Table) -> None:
    if not table.num_rows:
        return
    part, data = encode(table)
    times, diffs = (table.column(name).to_pylist() for name in ("_time", "_diff"))
    assert (part.rows, part.bytes) == (table.num_rows, len(data))
    assert (part.time_min, part.time_max, part.diff_min) == (min(times), max(times), min(diffs))
    for (low, high, nulls), name in zip(part.columns, data_names(table), strict=True):
        values = [value for value in physical(table.column(name)) if value is not None]
        assert nulls == table.column(name).null_count
        assert low is None or all(low <= value for value in values)
        assert high is None or all(value <= high for value in values)
    wire = msgspec.msgpack.encode(part)
    assert msgspec.msgpack.decode(wire, type=Part) == part


@given(update_tables(rows_min=1, rows_max=4), st.data())
def test_pruning_loses_no_row(table: pa.Table, data: st.DataObject) -> None:
    if not table.num_rows:
        return
    part, _ = encode(table)
    at = data.draw(st.integers(0, table.num_columns - 3))
    row = data.draw(st.integers(0, table.num_rows - 1))
    value = physical(table.column(at))[row]
    time = table.column("_time").to_pylist()[row]
    nested = pa.types.is_nested(table.schema.field(at).type)
    assert part.may_match(times=(time, time), ranges={at: (value, value)})
    assert part.may_match(times=(None, time), ranges={at: (None, value)})
    if not nested:
        others = [v for v in physical(table.column(at)) if v is not None]
        probes: list[Any] = sorted({*others[:1], *([] if value is None else [value])})
        assert part.may_hold(at, [*probes, None] if value is None else probes)


def test_pruning_sees_what_cannot_match() -> None:
    part, _ = encode(numbers(100).set_column(0, "k", pa.array(range(10, 110))), ("k",))
    assert not part.may_match(times=(8, None))
    assert not part.may_match(times=(None, 6))
    assert not part.may_match(ranges={0: (110, None)})
    assert not part.may_match(ranges={0: (None, 9)})
    assert not part.may_match(ranges={1: ("s", "t")})
    assert part.may_match(times=(7, 7), ranges={0: (109, 200), 1: ("row 5", None)})
    assert not part.may_hold(0, [1, 9, 110])
    assert not part.may_hold(0, [])
    assert not part.may_hold(0, [None])
    assert part.may_hold(1, [None])
    assert part.may_hold(0, [1, 10, 200])


def test_a_column_of_nulls_matches_no_value() -> None:
    table = update_table({"c0": (pa.int64(), [None, None])}, [0, 0], [1, 1])
    part, _ = encode(table)
    assert not part.may_match(ranges={0: (None, 5)})
    assert part.may_match(ranges={0: (None, None)})
    assert not part.may_hold(0, [5])
    assert part.may_hold(0, [5, None])


@pytest.mark.parametrize(
    ("kind", "value", "low", "high"),
    [
        (pa.string(), "z" * 40, "z" * 32, "z" * 31 + "{"),
        (pa.string(), "é" * 40, "é" * 16, "é" * 15 + "ê"),
        (pa.string(), "a" + "\U0010ffff" * 40, "a" + "\U0010ffff" * 7, "b"),
        (pa.string(), "\U0010ffff" * 40, "\U0010ffff" * 8, None),
        (pa.string(), "\ud7ff" * 40, "\ud7ff" * 10, "\ud7ff" * 9 + "\ue000"),
        (pa.binary(), b"a\xff" * 40, b"a\xff" * 16, b"a\xff" * 15 + b"b"),
        (pa.binary(), b"\xff" * 40, b"\xff" * 32, None),
        (pa.float64(), float("nan"), float("inf"), float("inf")),
        (pa.timestamp("us"), 2**63 - 1, 2**63 - 1, 2**63 - 1),
        (pa.bool_(), True, 1, 1),
    ],
)
def test_bounds(kind: pa.DataType, value: Any, low: Any, high: Any) -> None:
    part, _ = encode(update_table({"c0": (kind, [value])}, [0], [1]))
    assert part.columns[0] == (low, high, 0)


def test_every_flipped_bit_and_every_truncation_is_corrupt() -> None:
    part, data = encode(numbers(20), ("k",))
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(Corrupt, match="parts/one"):
                decode_part(bytes(changed), part)
        with pytest.raises(Corrupt, match="parts/one"):
            decode_part(data[:at], part)
    with pytest.raises(Corrupt, match="parts/one"):
        decode_part(data + b"\0", part)


def test_an_iterator_makes_one_part_of_several_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "ROW_GROUP_ROWS", 1000)
    table = numbers(3500)
    tables = (table.slice(at, 300) for at in range(0, 3500, 300))
    part, data = encode_part(
        tables, blob_key="x", key_columns=["k"], schema_id=3, consolidated=True
    )
    assert decode_part(data, part).equals(table)
    assert pq.ParquetFile(io.BytesIO(data)).metadata.num_row_groups > 2
    assert (part.rows, part.schema_id, part.consolidated) == (3500, 3, True)
    assert part.columns == ((0, 3499, 0), ("row 1", "row 998", 1167))


@pytest.mark.parametrize(
    "names",
    [["a.b", "a", "c"], ["a", "a.b", "a.b.c"], ["", "é", 'a "b"'], ["list", "element", "x"]],
)
def test_columns_of_any_name(names: list[str]) -> None:
    nested = [{"b": at, "c": [at]} for at in range(5)]
    data = dict(zip(names, [range(5), nested, ["x"] * 5], strict=True))
    table = pa.table({**data, "_time": [0] * 5, "_diff": [1] * 5})
    part, stored = encode(table, (names[0],))
    whole = decode_part(stored, part)
    assert whole.equals(table.cast(whole.schema))
    some = ["_diff", names[2], "no such column", names[0]]
    assert decode_part(stored, part, some).column_names == ["_diff", names[2], names[0]]


def test_a_part_without_rows_is_refused() -> None:
    nothing: Iterator[pa.Table] = iter([numbers(0)])
    with pytest.raises(ValueError, match="at least one row"):
        encode_part(nothing, blob_key="x", key_columns=["k"])


@settings(max_examples=20)
@given(update_tables(rows_min=1, rows_max=5))
def test_thrift_writes_what_it_read(table: pa.Table) -> None:
    if not table.num_rows:
        return
    _, data = encode(table)
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    fields, end = decode_struct(footer)
    assert end == length
    assert encode_struct(fields) == footer


@given(st.binary(max_size=60))
def test_thrift_refuses_or_reads_any_bytes(data: bytes) -> None:
    try:
        fields, end = decode_struct(data)
    except Corrupt:
        return
    assert end <= len(data)
    assert decode_struct(encode_struct(fields))[0] == fields


@pytest.fixture
def part_file(tmp_path: Path) -> Path:
    """A part with nested columns, as a file."""
    rows = 5000
    table = numbers(rows)
    lists = pa.array([None if at % 7 == 0 else [at, None] for at in range(rows)])
    interval = pa.array([{"months": at, "days": None, "micros": at} for at in range(rows)])
    stamps = pa.array(range(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
    ids = pa.array([at.to_bytes(16, "big") for at in range(rows)], pa.binary(16))
    for place, (name, column) in enumerate(
        {"l": lists, "i": interval, "t": stamps, "u": ids}.items()
    ):
        table = table.add_column(2 + place, name, column)
    encoded = encode_part(table, blob_key="x", key_columns=["k"])
    file = tmp_path / "part.parquet"
    file.write_bytes(encoded.data)
    return file


def test_pyarrow_and_duckdb_read_a_part(part_file: Path) -> None:
    table = pq.read_table(part_file, page_checksum_verification=True)
    assert table.num_rows == 5000
    query = "select count(*), sum(k), count(s), sum(l[1]), sum(i.micros), max(t)::text, max(_time)"
    (got,) = duckdb.sql(f"{query} from '{part_file}'").fetchall()
    total = sum(range(5000))
    listed = sum(at for at in range(5000) if at % 7)
    assert got[:5] == (5000, total, 3333, listed, total)
    assert got[6] == 7
    few = duckdb.sql(f"select s from '{part_file}' where k in (1, 4999)").fetchall()
    assert sorted(few) == [("row 1",), ("row 4999",)]


def test_spark_reads_a_part(part_file: Path, spark: SparkSession) -> None:
    frame = spark.read.parquet(str(part_file))
    names = "count(*)", "sum(k)", "count(s)", "sum(l[0])", "sum(i.micros)", "max(_time)"
    row = tuple(frame.selectExpr(*names).first() or ())
    total = sum(range(5000))
    listed = sum(at for at in range(5000) if at % 7)
    assert row == (5000, total, 3333, listed, total, 7)
    assert sorted(r.s for r in frame.where("k in (1, 4999)").collect()) == ["row 1", "row 4999"]
