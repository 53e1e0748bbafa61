"""FILES: every complete line once, whatever grows when; and what becomes of files that lie."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source import START, Frontier
from noonmark.source.contract import Split, is_error, record_schema
from noonmark.source.impl import file_forms
from noonmark.source.impl.file_forms import Lines, Parquet
from noonmark.source.impl.file_store import Pattern
from noonmark.source.impl.files import Files, of_lines
from noonmark.source.impl.fingerprint import (
    RECORD_MARK,
    UNIT,
    Broken,
    broken_offset,
    fingerprint,
    pack,
    record_offsets,
    why_broken,
)
from noonmark.source.splits import group_splits, read_splits
from noonmark.tvc import known_partitions

NOON = 1_700_000_000_000


class Hands:
    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


class Reader:
    """Ingestion in small: probe, read what is new, remember the frontier, and nothing else."""

    def __init__(self, source: Files) -> None:
        self.source = source
        self.known: Frontier = START
        self.read_up_to: Frontier = START
        self.records: list[tuple[str, int, Any]] = []
        self.errors: list[tuple[str, int, str]] = []

    def probe(self, now: int = NOON) -> Reader:
        # A fresh source every time: it keeps nothing.
        source = pickle.loads(pickle.dumps(self.source))
        found = asyncio.run(source.latest(Hands(now), self.known))
        assert found.at_or_beyond(self.known)
        self.known = found
        return self

    def read(self) -> Reader:
        for batch in read_splits(self.source, self.source.plan(self.read_up_to, self.known)):
            columns = batch.to_pydict()
            names, offsets = columns["_partition"], columns["_offset"]
            if is_error(batch):
                self.errors += zip(names, offsets, columns["_reason"], strict=True)
                continue
            assert batch.schema.equals(record_schema(self.source, 0))
            data = columns.get("value") or [
                tuple(row.values())
                for row in batch.drop_columns(batch.schema.names[:4]).to_pylist()
            ]
            self.records += zip(names, (o // UNIT for o in offsets), data, strict=True)
        self.read_up_to = self.known
        return self


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, chunks and batches of a few bytes, so that lines lie across all seams."""
    monkeypatch.setattr(Lines, "piece_size", lambda _: 7)
    monkeypatch.setattr(file_forms, "_CHUNK_BYTES", 3)
    monkeypatch.setattr(file_forms, "_BATCH_ROWS", 2)


def lines_of(name: str, data: bytes, skip_blank: bool) -> list[tuple[str, int, bytes]]:
    """The definition: complete lines, each with the byte at which it begins."""
    found, start = [], 0
    while (end := data.find(b"\n", start)) >= 0:
        line = data[start:end].removesuffix(b"\r")
        if not skip_blank or line.strip():
            found.append((name, start, line))
        start = end + 1
    return found


appended = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "d/c"]),
        st.sampled_from(
            [
                b"x\n",
                b"long line\n",
                b"\n",
                b"half",
                b"\r\n",
                b"r\r\n",
                b" \n",
                b"one\ntwo\n",
                b"\r",
                b"\xff\n",
            ]
        ),
        st.sampled_from(["", "probe", "read"]),
    ),
    max_size=14,
)


@given(appended, st.booleans())
@settings(max_examples=150)
def test_every_complete_line_is_read_once(history: Any, skip_blank: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(Lines, "piece_size", lambda _: 7)
        patch.setattr(file_forms, "_CHUNK_BYTES", 3)
        patch.setattr(file_forms, "_BATCH_ROWS", 2)
        reader = Reader(of_lines(folder, skip_blank=skip_blank))
        contents: dict[str, bytes] = {}
        for name, data, then in history:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as file:
                file.write(data)
            contents[name] = contents.get(name, b"") + data
            if then:
                reader.probe()
            if then == "read":
                reader.read()
        reader.probe().read()
        expected = [
            line for name in contents for line in lines_of(name, contents[name], skip_blank)
        ]
        assert sorted(reader.records) == sorted(expected)
        assert reader.errors == []


@pytest.mark.usefixtures("small")
class TestFilesThatLie:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "good").write_bytes(b"fine\n")
        (tmp_path / "bad").write_bytes(b"first line\nsecond line\n")
        return tmp_path

    def outcome(self, reader: Reader, folder: Path) -> list[str]:
        """What is said about the bad file, once; the good one goes on."""
        with (folder / "good").open("ab") as file:
            file.write(b"more\n")
        reader.probe().read()
        assert [r[2] for r in reader.records if r[0] == "good"] == [b"fine", b"more"]
        said = [(name, reason) for name, _, reason in reader.errors]
        reader.probe().read().probe().read()
        assert [(name, reason) for name, _, reason in reader.errors] == said
        assert {name for name, _ in said} <= {"bad"}
        return sorted({reason for _, reason in said})

    def test_shorter_after_it_was_read(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe().read()
        os.truncate(folder / "bad", 11)
        expected = ["file 'bad' became shorter than what was already read of it"]
        assert self.outcome(reader, folder) == expected
        assert why_broken(known_partitions(reader.known)["bad"]) is Broken.SHRUNK

    def test_another_text_of_the_same_length(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe().read()
        (folder / "bad").write_bytes(b"FIRST line\nsecond line\n")
        [reason] = self.outcome(reader, folder)
        assert reason.startswith("file 'bad' was replaced")

    def test_a_longer_text_that_begins_otherwise(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe().read()
        (folder / "new").write_bytes(b"something else altogether\n" * 9)
        os.replace(folder / "new", folder / "bad")
        [reason] = self.outcome(reader, folder)
        assert reason.startswith("file 'bad' was replaced")
        assert (b"something else altogether",) not in [r[2:] for r in reader.records]

    def test_gone_after_it_was_read_is_no_error(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe().read()
        (folder / "bad").unlink()
        assert self.outcome(reader, folder) == []

    def test_gone_before_it_was_read(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe()
        (folder / "bad").unlink()
        assert self.outcome(reader, folder) == ["file 'bad' went away before it was read"]

    def test_replaced_before_it_was_read(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe()
        (folder / "bad").write_bytes(b"FIRST line\nsecond line\n")
        reader.read()
        assert [r for r in reader.records if r[0] == "bad"] == []
        assert {reason for _, _, reason in reader.errors} == {
            "file 'bad' was replaced: what was already read of it is not there any more, "
            "before it was read"
        }

    def test_shorter_before_it_was_read(self, folder: Path) -> None:
        reader = Reader(of_lines(str(folder))).probe()
        os.truncate(folder / "bad", 5)
        reader.read()
        assert [r for r in reader.records if r[0] == "bad"] == []
        [reason] = {reason for _, _, reason in reader.errors}
        assert "became shorter" in reason

    def test_replaced_while_it_is_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The check comes again after the bytes: none of another text are yielded."""
        reader = Reader(of_lines(str(folder))).probe()
        real = Lines.records

        def swap(self: Lines, file: Any, span: Any, whole: Any) -> Any:
            (folder / "bad").write_bytes(b"FIRST line\nSECOND line\n")
            return real(self, file, span, whole)

        monkeypatch.setattr(Lines, "records", swap)
        splits = [
            split for split in reader.source.plan(START, reader.known) if split.partition == "bad"
        ]
        batches = list(read_splits(reader.source, splits))
        assert batches
        assert all(is_error(batch) for batch in batches)


def test_a_compressed_file_is_an_error_and_not_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(b"\x1f\x8b\n")
    (tmp_path / "b.json").write_bytes(b"{}\n")
    reader = Reader(of_lines(str(tmp_path))).probe().read().probe().read()
    assert [r[2] for r in reader.records] == [b"{}"]
    assert [e[2] for e in reader.errors] == [
        "file 'a.json.gz' is compressed, which is not supported"
    ]


def test_an_end_that_ends_a_line_and_then_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo")
    reader = Reader(Files(str(tmp_path), Lines(unterminated=True))).probe().read()
    assert [r[1:] for r in reader.records] == [(0, b"one"), (4, b"two")]
    with (tmp_path / "a").open("ab") as file:
        file.write(b" and a half\nthree\n")
    reader.probe().read()
    assert [r[1:] for r in reader.records[2:]] == [(19, b"three")]
    assert [e[2] for e in reader.errors] == ["a line went on after its file had ended"]


ROWS = Schema.of(a="bigint not null", b="text")


def parquet(path: Path, rows: list[dict[str, Any]], group: int = 2) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)


def test_parquet_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parquet, "piece_size", lambda _: 3)
    rows = [{"a": n, "b": f"row {n}", "other": 1.5} for n in range(7)]
    parquet(tmp_path / "x.parquet", rows)
    reader = Reader(Files(str(tmp_path / "*.parquet"), Parquet(ROWS))).probe().read()
    assert sorted(reader.records) == [("x.parquet", n, (n, f"row {n}")) for n in range(7)]
    parquet(tmp_path / "y.parquet", [{"a": 1}])
    reader.probe().read()
    assert reader.records[-1] == ("y.parquet", 0, (1, None))
    assert reader.errors == []
    parquet(tmp_path / "x.parquet", rows[:3])
    reader.probe().read().probe().read()
    assert [e[2] for e in reader.errors] == [
        "file 'x.parquet' was replaced: what was already read of it is not there any more"
    ]


def test_parquet_that_does_not_fit_is_an_error_of_its_rows(tmp_path: Path) -> None:
    parquet(tmp_path / "good", [{"a": 1, "b": "x"}])
    parquet(tmp_path / "null", [{"a": None, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "z"}])
    parquet(tmp_path / "type", [{"a": "text", "b": "x"}])
    reader = Reader(Files(str(tmp_path), Parquet(ROWS))).probe().read()
    assert sorted(reader.records) == [("good", 0, (1, "x")), ("null", 2, (2, "z"))]
    assert sorted((name, offset // UNIT) for name, offset, _ in reader.errors) == [
        ("null", 0),
        ("type", 0),
    ]
    assert 'column "a"' in reader.errors[0][2]


def test_truncated_parquet_has_time_to_settle(tmp_path: Path) -> None:
    parquet(tmp_path / "x", [{"a": 1, "b": "x"}])
    whole = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(whole[:-5])
    os.utime(tmp_path / "x", (NOON / 1000, NOON / 1000))
    reader = Reader(Files(str(tmp_path), Parquet(ROWS))).probe(NOON + 59_000).read()
    assert reader.errors == []
    reader.probe(NOON + 60_000).read()
    assert [e[2] for e in reader.errors] == ["file 'x' is not a whole Parquet file"]


def test_a_corrupt_row_group_is_an_error_of_that_group(tmp_path: Path) -> None:
    rows = [{"a": n, "b": "text " * 50 + str(n)} for n in range(4)]
    parquet(tmp_path / "x", rows)
    offset = pq.ParquetFile(tmp_path / "x").metadata.row_group(1).column(1).data_page_offset
    data = bytearray((tmp_path / "x").read_bytes())
    data[offset : offset + 20] = b"\xff" * 20
    (tmp_path / "x").write_bytes(bytes(data))
    reader = Reader(Files(str(tmp_path), Parquet(ROWS))).probe().read()
    assert [r[1] for r in reader.records] == [0, 1]
    assert [(e[0], e[1] // UNIT) for e in reader.errors] == [("x", 2)]
    assert reader.errors[0][2].startswith("row group 1: ")


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.binary(), st.binary())
def test_offsets_are_ordered_by_position(p: int, q: int, head: bytes, tail: bytes) -> None:
    record = int(record_offsets(np.array([p]))[0])
    frontier = pack(q, fingerprint(head, tail))
    assert (record >= frontier) == (p >= q)
    assert record % UNIT == RECORD_MARK
    assert frontier < broken_offset(Broken.SHRUNK) < 2**63
    assert why_broken(frontier) is None


@pytest.mark.parametrize(
    ("pattern", "name", "meant"),
    [
        ("/d/", "x.json", True),
        ("/d/", "deep/x.json", True),
        ("/d/", ".hidden", False),
        ("/d/", "_temporary/x", False),
        ("/d/*.json", "x.json", True),
        ("/d/*.json", "x.csv", False),
        ("/d/*.json", "deep/x.json", False),
        ("/d/**/*.json", "deep/er/x.json", True),
        ("/d/**/*.json", "x.json", True),
        ("/d/_*.json", "_x.json", True),
        ("/d/[ab]?.json", "a1.json", True),
        ("/d/[!ab]?.json", "a1.json", False),
        ("/d/x.json", "x.json", True),
        ("/d/x.json", "xyjson", False),
        ("logs", "logs/a", True),
        ("logs", "logs2/a", False),
    ],
)
def test_patterns(pattern: str, name: str, meant: bool) -> None:
    assert Pattern.of(pattern).matches(name) is meant


def test_a_place_that_cannot_have_files_is_refused() -> None:
    for url in ("ftp://host/x", ""):
        with pytest.raises(ConfigError):
            of_lines(url)


def test_an_unchanged_file_is_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x\n")
    source = of_lines(str(tmp_path))
    first = asyncio.run(source.latest(Hands(), START))
    opened: list[str] = []
    monkeypatch.setattr(Files, "_reached", lambda *got: opened.append(got[2].name))
    assert asyncio.run(source.latest(Hands(), first)) == first
    assert opened == []
    with (tmp_path / "a").open("ab") as file:
        file.write(b"y\n")
    asyncio.run(source.latest(Hands(), first))
    assert opened == ["a"]


def test_the_folder_may_be_gone(tmp_path: Path) -> None:
    from noonmark.errors import SourceStalled

    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").write_bytes(b"x\n")
    reader = Reader(of_lines(f"{folder}/")).probe()
    shutil.rmtree(folder)
    with pytest.raises(SourceStalled, match="cannot list"):
        reader.probe()


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(1, 6))
def test_groups_share_out_every_split_once(weights: list[int], groups_max: int) -> None:
    splits = [Split(at, 0, 1, weight=weight) for at, weight in enumerate(weights)]
    groups = group_splits(splits, groups_max)
    assert sorted((s.partition for group in groups for s in group), key=int) == list(
        range(len(weights))
    )
    assert all(groups)
    assert len(groups) <= groups_max
    if len(groups) > 1:
        loads = [sum(s.weight for s in group) for group in groups]
        assert max(loads) - min(loads) <= max(weights)
