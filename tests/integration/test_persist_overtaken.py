"""A reader that holds nothing, overtaken by compaction and garbage collection while it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark import persist
from noonmark.errors import CapabilityInvalid
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(id="bigint", name="text")
# Parts of ten rows, deleted as soon as they leave the state; nothing compacts by itself.
CONFIG = persist.Config(
    inline_bytes_max=0, part_rows_max=10, merge_fan_in=100, garbage_grace_ms=0, poll_s=0.01
)


@pytest.fixture
def places(tmp_path: Path) -> tuple[persist.Client, persist.Client]:
    """A writer whose collection has three parts, and an independent reader that knows them."""
    writer = persist.open(tmp_path, options=persist.Options(config=CONFIG))
    write, _ = writer.create_or_load("c", SCHEMA, ("id",))
    write.write([persist.Update((n, "x"), 1, 1) for n in range(30)]).result()
    write.seal(2).result()
    options = persist.Options(mode="independent", config=CONFIG)
    return writer, persist.open(tmp_path, options=options)


def overtake(writer: persist.Client) -> None:
    writer.compact("c").result()
    wait = writer.journal.wait_for(lambda state: not state.garbage)
    writer.runtime.submit(wait).result(20)


def test_before_the_first_row_it_reads_the_new_parts(
    places: tuple[persist.Client, persist.Client],
) -> None:
    writer, reader = places
    with writer, reader:
        _, read = reader.create_or_load("c")
        snapshot = read.snapshot(1).result()
        overtake(writer)
        assert sorted(snapshot.rows()) == [(n, "x") for n in range(30)]


def test_after_the_first_row_it_is_told_and_gives_no_row_twice(
    places: tuple[persist.Client, persist.Client],
) -> None:
    writer, reader = places
    with writer, reader:
        _, read = reader.create_or_load("c")
        tables = read.snapshot(1).result().tables()
        seen = next(tables).column("id").to_pylist()
        overtake(writer)
        with pytest.raises(CapabilityInvalid) as caught:
            seen.extend(number for table in tables for number in table.column("id").to_pylist())
        assert caught.value.fields["as_of"] == 1
        assert len(seen) == len(set(seen))
