"""The law of `noonmark.persist.part.pages`: the rows of a part that hold a probe, or `Corrupt`."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import Corrupt, MissingObject
from noonmark.persist.part import pages as pages_module
from noonmark.persist.part import part as part_module
from noonmark.persist.part.pages import Tails, read_rows
from noonmark.persist.part.part import EncodedPart, Part, decode_part, encode_part
from noonmark.persist.part.run import sort
from support.store.update_tables import bits, rows_of, update_tables


class OneObject:
    """A Blob that holds one object and counts what is read of it."""

    def __init__(self, data: bytes | None) -> None:
        self.url = "memory:one"
        self.data = data
        self.bytes_read = 0
        self.reads = 0

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        assert key == "parts/one"
        if self.data is None:
            return None
        self.reads += 1
        found = self.data[start : start + length]
        self.bytes_read += len(found)
        return found


def read(
    blob: OneObject,
    part: Part,
    column: str,
    probes: pa.Array,
    names: list[str] | None = None,
    *,
    tails: Tails | None = None,
) -> pa.Table:
    """Through the pages, however small the part is."""
    kept = tails or Tails(bytes_max=0)
    return asyncio.run(
        read_rows(blob, part, column, probes, names, tails=kept, whole_bytes_max=0)  # type: ignore[arg-type]
    )


def encode(table: pa.Table, key: tuple[str, ...]) -> EncodedPart:
    return encode_part(sort(table, key), blob_key="parts/one", key_columns=key)


def attempt(data: bytes, part: Part, probes: pa.Array) -> tuple[list[Any] | None, Corrupt | None]:
    """The rows, or the refusal; any other error fails the test."""
    try:
        return rows_of(read(OneObject(data), part, "k", probes)), None
    except Corrupt as error:
        return None, error


def expected(table: pa.Table, column: str, probes: pa.Array) -> list[Any]:
    """By definition: the rows of the run, one after the other, whose value is a probe."""
    wanted = {row[0] for row in rows_of(pa.table({"p": probes}))}
    values = [row[0] for row in rows_of(table, [column])]
    return [row for row, value in zip(rows_of(table), values, strict=True) if value in wanted]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pages and row groups out of few rows; half of a part is never too much to read."""
    monkeypatch.setattr(part_module, "PAGE_ROWS", 4)
    monkeypatch.setattr(part_module, "ROW_GROUP_ROWS", 12)
    monkeypatch.setattr(pages_module, "WHOLE_SHARE", 1e9)
    monkeypatch.setattr(pages_module, "GAP_BYTES", 8)


@pytest.mark.usefixtures("small_pages")
class TestPagesOfFewRows:
    @given(st.data())
    def test_rows_are_those_of_the_whole_part(self, data: st.DataObject) -> None:
        table = data.draw(update_tables(rows_min=1, rows_max=60))
        if not table.num_rows:
            return
        key = (
            ("c0",)
            if table.num_columns < 4
            else data.draw(st.sampled_from([("c0",), ("c0", "c1")]))
        )
        encoded = encode(table, key)
        whole = decode_part(encoded.data, encoded.part)
        places = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=4))
        others = data.draw(update_tables(rows_min=1, rows_max=5))
        column = data.draw(st.sampled_from(["c0", "c0", "_time"]))
        probes = whole.column(column).take(pa.array(places, pa.int64())).combine_chunks()
        if others.schema.field(0).type == probes.type:
            probes = pa.concat_arrays([probes, *others.column(0).chunks])
        blob = OneObject(encoded.data)
        out = read(blob, encoded.part, column, probes)
        assert rows_of(out) == expected(whole, column, probes)
        assert out.schema == whole.schema
        some = read(blob, encoded.part, column, probes, ["_diff", "c0", "no such column"])
        assert rows_of(some) == rows_of(out, ["_diff", "c0"])

    @pytest.mark.parametrize("key", [("k",), ("s", "k"), ("d",)])
    def test_a_key_that_repeats_over_pages_and_row_groups(self, key: tuple[str, ...]) -> None:
        table = pa.table(
            {
                "k": [at // 10 for at in range(100)],
                "s": [None if at > 70 else f"key {at // 9:04}" for at in range(100)],
                "d": pa.array([at // 11 for at in range(100)]).cast(pa.decimal128(30, 0)),
                "l": [[at] * (at % 4) for at in range(100)],
                "_time": range(100),
                "_diff": [1] * 100,
            }
        )
        encoded = encode(table, key)
        whole = decode_part(encoded.data, encoded.part)
        for at in (0, 10, 49, 50, 97, 98):
            probes = whole.column(key[0]).slice(at, 1).combine_chunks()
            out = read(OneObject(encoded.data), encoded.part, key[0], probes)
            assert rows_of(out) == expected(whole, key[0], probes)
            assert out.num_rows >= 9

    def test_every_flipped_bit_is_corrupt_or_harmless(self) -> None:
        table = pa.table({"k": range(20), "s": ["x"] * 20, "_time": [0] * 20, "_diff": [1] * 20})
        encoded = encode(table, ("k",))
        probes = pa.array([2, 17])
        right = rows_of(read(OneObject(encoded.data), encoded.part, "k", probes))
        assert len(right) == 2
        refused = 0
        for at in range(len(encoded.data)):
            changed = bytearray(encoded.data)
            changed[at] ^= 1 << at % 8
            for damaged in (bytes(changed), encoded.data[:at]):
                got, error = attempt(damaged, encoded.part, probes)
                assert got == right or "parts/one" in str(error)
                refused += error is not None
        # Every truncation and every flip in the tail is seen; pages that are not read are not.
        assert refused >= len(encoded.data) + encoded.part.tail_bytes

    def test_all_bits_of_a_page_that_is_read(self) -> None:
        table = pa.table({"k": range(8), "_time": [0] * 8, "_diff": [1] * 8})
        encoded = encode(table, ("k",))
        tail_at = len(encoded.data) - encoded.part.tail_bytes
        for at in range(4, tail_at):
            for bit in range(8):
                changed = bytearray(encoded.data)
                changed[at] ^= 1 << bit
                with pytest.raises(Corrupt, match="parts/one"):
                    read(OneObject(bytes(changed)), encoded.part, "k", pa.array([1, 6]))


def test_pages_that_begin_at_different_rows() -> None:
    """A column of long text has smaller pages than the others: rows are added until they fit."""
    rng = np.random.default_rng(7)
    rows = 6000
    noise = [rng.bytes(1500).hex() for _ in range(200)]
    table = pa.table(
        {
            "k": range(rows),
            "s": [noise[at % 200] for at in range(rows)],
            "_time": [0] * rows,
            "_diff": [1] * rows,
        }
    )
    encoded = encode(table, ("k",))
    probes = pa.array([0, 777, 3000])
    out = read(OneObject(encoded.data), encoded.part, "k", probes)
    assert rows_of(out) == expected(table, "k", probes)


def test_a_missing_object_is_named() -> None:
    encoded = encode(pa.table({"k": [1], "_time": [0], "_diff": [1]}), ("k",))
    with pytest.raises(MissingObject, match="parts/one"):
        read(OneObject(None), encoded.part, "k", pa.array([1]))


def test_a_small_part_is_one_read() -> None:
    encoded = encode(pa.table({"k": [1, 2], "_time": [0, 0], "_diff": [1, 1]}), ("k",))
    blob = OneObject(encoded.data)
    out = asyncio.run(read_rows(blob, encoded.part, "k", pa.array([2])))  # type: ignore[arg-type]
    assert (out.column("k").to_pylist(), blob.reads) == ([2], 1)


def test_tails_are_kept_up_to_a_size() -> None:
    one = encode(pa.table({"k": [1, 2], "_time": [0, 0], "_diff": [1, 1]}), ("k",))
    other = encode(pa.table({"k": [3, 4], "_time": [0, 0], "_diff": [1, 1]}), ("k",))

    def tails_read(bytes_max: int) -> int:
        """How many tails are read for an absent key, which reads no page: one, one, other, one."""
        tails = Tails(bytes_max)
        reads = 0
        for encoded in (one, one, other, one):
            blob = OneObject(encoded.data)
            read(blob, encoded.part, "k", pa.array([9]), tails=tails)
            reads += blob.reads
        return reads

    assert tails_read(one.part.tail_bytes + other.part.tail_bytes) == 2
    assert tails_read(one.part.tail_bytes) == 3


def test_signed_zeros_and_nans_are_found_as_themselves() -> None:
    nan = float("nan")
    values = [-1.0, -0.0, 0.0, 1.0, nan, None]
    table = pa.table({"f": values, "_time": [0] * 6, "_diff": [1] * 6})
    encoded = encode(table, ("f",))
    for probe in values:
        out = read(OneObject(encoded.data), encoded.part, "f", pa.array([probe], pa.float64()))
        assert [bits(value) for value in out.column("f").to_pylist()] == [bits(probe)]


@pytest.fixture(scope="module")
def million() -> EncodedPart:
    rows = 1_000_000
    rng = np.random.default_rng(42)
    table = pa.table(
        {
            "k": np.arange(rows) * 3,
            "v": rng.integers(0, 1 << 40, rows),
            "s": pa.array(np.char.add("user ", rng.integers(0, 5000, rows).astype(str))),
            "f": rng.random(rows),
            "_time": np.full(rows, 1_700_000_000_000),
            "_diff": np.ones(rows, dtype=np.int64),
        }
    )
    return encode(table, ("k",))


def test_ten_keys_of_a_million_rows_read_under_two_percent(million: EncodedPart) -> None:
    blob = OneObject(million.data)
    keys = (np.random.default_rng(1).choice(1_000_000, 10, replace=False) * 3).tolist()
    tails = Tails(bytes_max=1 << 20)
    out = read(blob, million.part, "k", pa.array(keys), tails=tails)
    assert sorted(out.column("k").to_pylist()) == sorted(keys)
    assert blob.bytes_read < 0.02 * million.part.bytes
    cold = blob.bytes_read
    read(blob, million.part, "k", pa.array(keys), tails=tails)
    assert blob.bytes_read - cold == cold - million.part.tail_bytes


def test_absent_keys_read_no_page(million: EncodedPart) -> None:
    blob = OneObject(million.data)
    out = read(blob, million.part, "k", pa.array([-5, 3_000_000, 9_999_999]))
    assert out.num_rows == 0
    assert out.schema.names == ["k", "v", "s", "f", "_time", "_diff"]
    assert blob.bytes_read == million.part.tail_bytes


def test_many_keys_read_the_part_whole(million: EncodedPart) -> None:
    blob = OneObject(million.data)
    probes = pa.array(np.arange(0, 3_000_000, 600))
    out = read(blob, million.part, "k", probes)
    assert out.column("k").combine_chunks().equals(probes)
    assert blob.bytes_read == million.part.tail_bytes + million.part.bytes
