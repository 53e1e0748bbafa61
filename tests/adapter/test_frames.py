"""Rows for notebooks and data frames: shown, bulk inserts, reads and exports without a server."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import noonmark
from noonmark import shown
from noonmark.adapter.contract import Field
from noonmark.cli import app
from noonmark.embedded.answer import Answer
from noonmark.embedded.statements import copy_table
from noonmark.errors import BeforeSince, NoonmarkError, SchemaMismatch, UnknownCollection
from noonmark.rows import types as t
from support.serve.reading import connect, database


def made(folder: Path) -> int:
    """A location with two tables; the time before the last change."""

    async def go() -> int:
        async with asyncio.timeout(120), database(str(folder)) as opened:
            client = await connect(opened)
            session = client.session
            await client.ask("create schema s")
            await client.ask("create table s.t (a int primary key, b text, c numeric, d date)")
            await client.ask("create table twice (a int)")
            frame = pd.DataFrame({"a": [1, 2], "b": ["x<y", None], "d": ["2026-01-01", None]})
            name = "s.t"
            assert await copy_table(session, name, shown.as_arrow(frame)) == 2
            await client.ask("insert into twice values (1), (1), (2)")
            before = await opened.oracle.read_ts()
            await client.ask("update s.t set c = 1.50 where a = 2")
            bad = pa.table({"a": [1.5], "b": ["z"], "d": [None]})
            with pytest.raises(SchemaMismatch):
                await copy_table(session, name, bad)
            return before

    return asyncio.run(go())


def test_reads_without_a_server(tmp_path: Path) -> None:
    folder = tmp_path / "location"
    before = made(folder)
    found = noonmark.read(folder, "s.t")
    assert sorted(found.rows(), key=str) == [(1, "x<y", None, dt.date(2026, 1, 1)),
                                             (2, None, pytest.approx(1.5), None)]  # fmt: skip
    then = noonmark.read(folder, "s.t", as_of=before)
    assert [row[2] for row in then.rows()] == [None, None]
    moment = dt.datetime.fromtimestamp(before / 1000, dt.UTC)
    assert noonmark.read(folder, "s.t", as_of=moment).as_of == before
    assert noonmark.read(folder, "s.t", as_of=moment.isoformat(" ")).as_of == before
    assert sorted(noonmark.read(folder, "public.twice").rows()) == [(1,), (1,), (2,)]
    reader = pa.RecordBatchReader.from_stream(noonmark.read(folder, "twice"))
    assert duckdb.from_arrow(reader).aggregate("sum(a)").fetchall() == [(4,)]
    assert list(found.to_pandas().columns) == ["a", "b", "c", "d"]
    assert "x&lt;y" in found._repr_html_()
    assert "<i>NULL</i>" in found._repr_html_()
    with pytest.raises(UnknownCollection):
        noonmark.read(folder, "nothing")
    with pytest.raises(BeforeSince):
        noonmark.read(folder, "twice", as_of=1)


def test_no_java_and_no_spark_is_needed(tmp_path: Path) -> None:
    made(tmp_path / "location")
    code = (
        "import sys, noonmark; print(len(noonmark.read(sys.argv[1], 'twice')));"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "location")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


def test_export_to_parquet(tmp_path: Path) -> None:
    before = made(tmp_path / "location")
    target = tmp_path / "t.parquet"
    options = ["--data", str(tmp_path / "location"), "--to", str(target), "--as-of", str(before)]
    done = CliRunner().invoke(app, ["export", "s.t", *options], catch_exceptions=False)
    assert done.output == f"2 rows of s.t as of {before} in {target}\n"
    assert sorted(parquet.read_table(target).column("a").to_pylist()) == [1, 2]


def test_a_notebook_shows_the_first_rows() -> None:
    rows = [(n,) for n in range(60)]
    answer = Answer((Field("<n>", t.Integer()),), rows, None)  # type: ignore[arg-type]
    text = answer._repr_html_()
    assert "<th>&lt;n&gt;</th>" in text
    assert text.count("<tr>") == 1 + shown.ROWS_SHOWN
    assert "60 rows, 50 of them shown" in text
    with pytest.raises(NoonmarkError, match="no data frame"):
        shown.as_arrow([1, 2])
