"""What /metrics tells: every family with its meaning, and nothing watched that is not told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from noonmark.errors import EvaluationError, UniqueViolation
from noonmark.serve.metrics import Figures
from noonmark.serve.metrics.processes import ProcessFigures
from noonmark.serve.metrics.sources import SourceFigures
from noonmark.serve.metrics.storage import StorageFigures
from noonmark.serve.metrics.views import ViewFigures
from noonmark.serve.metrics.work import WorkFigures
from support.serve.reading import connect, with_database

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_NAME = re.compile(r"\b(?:noonmark|process)_[a-z_]+")


def figures(opened: Database) -> Figures:
    found = Figures()
    for each in (SourceFigures, ViewFigures, StorageFigures, WorkFigures):
        found.registry.register(each(opened))
    found.registry.register(ProcessFigures())
    return found


async def _populated(opened: Database) -> str:
    client = await connect(opened)
    for sql in (
        "create table t (a int)",
        "insert into t values (1), (2)",
        "create source c from load generator counter (tick interval '1s')",
    ):
        await client.ask(sql)
    return figures(opened).text().decode()


@with_database
async def test_statements_are_counted_by_kind_and_outcome(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table t (a int primary key)")
    for _ in range(2):
        with suppress(UniqueViolation):
            await client.ask("insert into t values (1)")
        await client.ask("select * from t")
    with suppress(EvaluationError):
        await client.ask("select 1 / a from t where a - 1 = 0 / a and 1 / (a - 1) = 1")
    told = figures(opened).text().decode()
    found = dict(re.findall(r"noonmark_statements_total({[^}]*}) (\S+)", told))
    assert found == {
        '{kind="create table",outcome="ok"}': "1.0",
        '{kind="create table",outcome="failed"}': "0.0",
        '{kind="insert",outcome="ok"}': "1.0",
        '{kind="insert",outcome="failed"}': "1.0",
        '{kind="select",outcome="ok"}': "2.0",
        '{kind="select",outcome="failed"}': "1.0",
    }


@with_database
async def test_what_is_stored_is_told(opened: Database) -> None:
    told = await _populated(opened)
    assert re.search(
        r'noonmark_frontier_seconds{frontier="upper",relation="public.t"} 1\.\d+e', told
    )
    assert re.search(r'noonmark_lag_seconds{kind="source",relation="public.c"} ', told)
    assert 'kind="table"' not in told  # a table is never behind
    commits = float(re.findall(r"^noonmark_commit_seconds_count (\S+)$", told, re.MULTILINE)[0])
    entries = float(re.findall(r"^noonmark_log_entries_total (\S+)$", told, re.MULTILINE)[0])
    assert 3 <= commits <= entries
    assert float(re.findall(r"^noonmark_stored_updates (\S+)$", told, re.MULTILINE)[0]) >= 2
    assert "process_resident_memory_bytes" in told
    assert re.search(r'noonmark_source_updates_total{source="c"} ', told)
    assert 'noonmark_source_bad_records{source="c"} 0.0' in told
    assert 'noonmark_processes{part="server"} 1.0' in told
    (used,) = re.findall(r'noonmark_memory_resident_bytes{part="server"} (\S+)', told)
    assert float(used) > 20e6


@with_database
async def test_every_family_says_what_it_is(opened: Database) -> None:
    told = await _populated(opened)
    families = set(re.findall(r"^# TYPE (\S+) ", told, re.MULTILINE))
    helped = dict(re.findall(r"^# HELP (\S+) (.+)$", told, re.MULTILINE))
    assert families == set(helped)
    assert all(len(text) > 10 for text in helped.values())
    promtool = shutil.which("promtool")
    if promtool is not None:
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=told, text=True, capture_output=True, check=False
        )
        assert checked.returncode == 0, checked.stderr


@with_database
async def test_what_is_watched_is_told(opened: Database) -> None:
    told = await _populated(opened)
    families = set(re.findall(r"^# TYPE (\S+) ", told, re.MULTILINE))
    board = json.loads((DEPLOY / "grafana" / "noonmark.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    asked += re.findall(r"expr: (.+)", rules)
    assert len(asked) > 25
    for expression in asked:
        for name in _NAME.findall(expression):
            plain = re.sub(r"_(bucket|count|sum)$", "", name)
            assert plain in families or name in families, f"{name} in {expression}"
    promtool = shutil.which("promtool")
    if promtool is not None:
        path = str(DEPLOY / "prometheus" / "alerts.yml")
        subprocess.run([promtool, "check", "rules", path], check=True, capture_output=True)


@with_database
async def test_relations_beyond_a_number_have_no_labels(opened: Database) -> None:
    client = await connect(opened)
    for number in range(5):
        await client.ask(f"create table t{number} (a int)")
    some = Figures()
    some.registry.register(ViewFigures(opened, shown_max=2))
    told = some.text().decode()
    assert "noonmark_relations_not_shown 3.0" in told
    assert told.count('frontier="since"') == 2
