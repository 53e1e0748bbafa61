"""`noonmark shard`: read-only, beside a running writer, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from noonmark import persist
from noonmark.errors import ConfigError, NotYetComplete, UnknownCollection
from noonmark.persist import Config, Options, Update
from noonmark.rows.schema import Schema
from noonmark.shard.command import shard as app

CONFIG = Config(inline_bytes_max=2048, rollup_entries=4)


@pytest.fixture
def writer(tmp_path: Path):  # type: ignore[no-untyped-def]
    with persist.open(tmp_path / "data", options=Options(config=CONFIG)) as client:
        write, _ = client.create_or_load("orders", Schema.of(id="bigint", item="text"), ("id",))
        write.write([Update((i, f"item {i}"), 5, 1) for i in range(500)])
        write.write([Update((7, "item 7"), 6, -1), Update((1000, None), 6, 2)])
        write.seal(10).result(10)
        yield client


def run(writer: persist.Client, *words: str) -> Result:
    where = ["--data", str(writer.blob.url)]
    return CliRunner().invoke(app, [*words, *where])


def test_ls_and_show(writer: persist.Client) -> None:
    listed = json.loads(run(writer, "ls", "--json").stdout)
    (orders,) = listed["shards"]
    assert (orders["name"], orders["since"], orders["upper"]) == ("orders", 0, 10)
    assert (orders["updates"], orders["parts"]) == (502, 1)
    assert listed["location"]["writer"]
    assert "orders" in run(writer, "ls").stdout
    shown = json.loads(run(writer, "show", "orders", "--json").stdout)
    assert shown["schema"] == ["id bigint", "item text"]
    assert {batch["kind"] for batch in shown["contents"]} == {"inline", "parts"}
    assert "id bigint" in run(writer, "show", "orders").stdout


def test_dump_at_each_time(writer: persist.Client) -> None:
    lines = run(writer, "dump", "orders", "--as-of", "5").stdout.splitlines()
    assert lines[0] == "id\titem"
    assert len(lines) == 501
    latest = run(writer, "dump", "orders", "--json").stdout.splitlines()
    assert len(latest) == 501
    assert latest.count('{"id": "1000", "item": null}') == 2
    early = run(writer, "dump", "orders", "--as-of", "10")
    assert isinstance(early.exception, NotYetComplete)


def test_verify_finds_what_was_damaged(writer: persist.Client) -> None:
    assert json.loads(run(writer, "verify", "--json").stdout)["findings"] == []
    (part,) = Path(writer.blob.url.removeprefix("file://")).glob("part/**/*.parquet")
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    found = run(writer, "verify", "--json")
    assert found.exit_code == 1
    (finding,) = json.loads(found.stdout)["findings"]
    assert finding["object"].endswith(part.name)


def test_bad_use_is_refused(writer: persist.Client, tmp_path: Path) -> None:
    assert isinstance(run(writer, "show", "nothing").exception, UnknownCollection)
    empty = tmp_path / "empty"
    refused = CliRunner().invoke(app, ["ls", "--data", str(empty)])
    assert isinstance(refused.exception, ConfigError)
    assert not empty.exists()


def test_the_writer_does_not_notice(writer: persist.Client) -> None:
    before = writer.state.seqno
    for words in (["ls"], ["show", "orders"], ["verify"], ["dump", "orders"]):
        assert run(writer, *words).exit_code == 0
    assert writer.state.seqno == before
