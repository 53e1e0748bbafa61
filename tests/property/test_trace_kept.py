"""The law of ``noonmark.compute.trace.kept``: a run begins with the files of the one before it,
and never with bytes that are not those that were kept."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.compute.trace import kept
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.errors import Corrupt
from noonmark.persist import task
from noonmark.persist.client import Client, Options
from noonmark.persist.config import Config
from noonmark.rows.schema import Schema
from noonmark.sql.ir.scalar import column
from noonmark.tvc import Update

SCHEMA = Schema.of(k="bigint", name="text")
#: Parts of a hundred rows, none of them in the log.
CONFIG = Config(part_rows_max=100, inline_bytes_max=0, merge_fan_in=1000)
ROWS = [(k % 40, f"row {k}") for k in range(350)]


@pytest.fixture(autouse=True)
def parts_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of few rows, which are kept in memory elsewhere."""
    monkeypatch.setattr("noonmark.compute.trace.small.FEW", -1)


def opened(path: Path) -> Client:
    return persist.open(path, options=Options(notify_host=None, config=CONFIG))


def written(client: Client) -> CollectionAt:
    write = client.create_or_load("t", SCHEMA, key=("k",))[0]
    write.compare_and_append([Update(row, 1, 1) for row in ROWS], 0, 2).result()
    return at(client)


def at(client: Client) -> CollectionAt:
    return CollectionAt(task.TaskLocation(client.blob.url, CONFIG), client.state.collection("t"), 1)


def names_of(place: CollectionAt, run: Path, key: int) -> Counter[str]:
    """A look-up by a process of a run that has a cache of its own."""
    probe = [pa.array([key], pa.int64())]
    _, rows = TraceReader(run).find(place, (column(0, SCHEMA.columns[0]),), probe, {0, 1})
    names = rows.columns[1]
    assert names is not None
    return Counter(names.to_pylist())


def expected(key: int) -> Counter[str]:
    return Counter(name for k, name in ROWS if k == key)


def spoil_parts(location: Path) -> None:
    for part in (location / "part").rglob("*"):
        if part.is_file():
            part.write_bytes(b"spoilt" + part.read_bytes()[6:])


def test_the_next_run_reads_no_part(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as client:
        place = written(client)
        assert names_of(place, tmp_path / "first", 7) == expected(7)
        spoil_parts(tmp_path / "data")
        assert names_of(place, tmp_path / "second", 8) == expected(8)


def test_it_would_read_them_if_nothing_were_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as client:
        place = written(client)
        assert names_of(place, tmp_path / "first", 7) == expected(7)
        spoil_parts(tmp_path / "data")
        (tmp_path / "data" / kept.FOLDER).rename(tmp_path / "away")
        with pytest.raises(Corrupt):
            names_of(place, tmp_path / "second", 8)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_flipped_or_torn_is_made_again(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with opened(tmp_path / "data") as client:
        place = written(client)
        names_of(place, tmp_path / "first", 7)
        files = sorted((tmp_path / "data" / kept.FOLDER).rglob("*.*"))
        assert files
        for file in files:
            spoil(file, chance)
        assert names_of(place, tmp_path / "second", 9) == expected(9)
        third = names_of(place, tmp_path / "third", 10)
        assert third == expected(10), "what was made again is kept again"


def spoil(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    file.unlink()  # not the bytes that the first run has mapped
    if chance.random() < 0.3:
        data = data[: chance.randrange(len(data))]
    elif chance.random() < 0.2:
        data = bytearray(len(data))
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def test_files_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data") as client:
        place = written(client)
        names_of(place, tmp_path / "first", 7)
        monkeypatch.setattr(kept, "_meaning", lambda: b"another")
        spoil_parts(tmp_path / "data")
        with pytest.raises(Corrupt):
            names_of(place, tmp_path / "second", 8)


def test_what_goes_while_it_is_taken_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path) -> str:
        if kept.FOLDER in path.parts:
            path.unlink()
        raise FileNotFoundError(path)

    with opened(tmp_path / "data") as client:
        place = written(client)
        names_of(place, tmp_path / "first", 7)
        monkeypatch.setattr(kept, "_checksum", gone)
        assert names_of(place, tmp_path / "second", 8) == expected(8)


def test_tidying_lets_go_of_what_is_of_no_part(tmp_path: Path) -> None:
    folder = tmp_path / "data" / kept.FOLDER
    with opened(tmp_path / "data") as client:
        place = written(client)
        names_of(place, tmp_path / "first", 7)
        kept.tidy(client.blob.url, 1 << 30)
        assert list(folder.iterdir())
        for part in (tmp_path / "data" / "part").rglob("*"):
            if part.is_file():
                part.unlink()
                break
        kept.tidy(client.blob.url, 1 << 30)
        assert not list(folder.iterdir())


def test_what_is_kept_is_no_object(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as client:
        place = written(client)
        before = client.runtime.submit(client.blob.list("")).result()
        names_of(place, tmp_path / "first", 7)
        assert client.runtime.submit(client.blob.list("")).result() == before
