"""Spark's JVM dies under a running server: readiness says so, and views go on by themselves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter.schedule import engine
from noonmark.adapter.schedule.engine import Engine
from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError
from noonmark.supervise import Supervisor
from support.serve.process import Server, serving

pytestmark = [pytest.mark.server, pytest.mark.spark]


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    below = [int(each) for each in found.stdout.split()]
    return below + [each for child in below for each in children(child)]


def jvm_of(server: Server) -> int:
    for child in children(server.process.pid):
        if "java" in os.path.realpath(f"/proc/{child}/exe"):
            return child
    raise AssertionError("no JVM runs")


def readiness(server: Server) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/readyz") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_for(server: Server, status: int, seconds: float) -> str:
    end = time.monotonic() + seconds  # noqa: TID251 - a real process
    while True:
        found, why = readiness(server)
        if found == status:
            return why
        assert time.monotonic() < end, f"{found} {why}"  # noqa: TID251 - likewise
        time.sleep(0.1)  # noqa: TID251 - likewise


def test_a_jvm_that_is_killed_is_started_again_and_views_go_on(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connect() as connection:
        connection.execute("create table t (a int)")
        connection.execute("create materialized view v as select count(*) as n from t")
        connection.execute("insert into t values (1)")
        assert connection.execute("select n from v").fetchone() == (1,)
        # Small ticks do not wait for Spark; so many rows do.
        connection.execute("create table many (a int)")
        connection.execute("insert into many select g from generate_series(1, 150000) g")
        assert connection.execute("select count(*) from many").fetchone() == (150_000,)
        for n in (2, 3):
            os.kill(jvm_of(server), signal.SIGKILL)
            why = wait_for(server, 503, 10)
            assert "Spark" in why
            # What needs no Spark goes on.
            connection.execute("insert into t values (%s)", (n,))
            assert connection.execute("select count(*) from t").fetchone() == (n,)
            # So do small changes of views, and the first contents of a new one.
            connection.execute(f"create materialized view v{n} as select max(a) as m from t")
            assert connection.execute("select n from v").fetchone() == (n,)
            assert connection.execute(f"select m from v{n}").fetchone() == (n,)
            assert wait_for(server, 200, 100) == "ok\n"


def test_a_spark_that_does_not_start_is_tried_again_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "AFTER_S", 0.0)
    monkeypatch.setattr(engine, "PAUSE_FIRST_S", 0.01)
    monkeypatch.setattr("noonmark.compute.jvm.lost.why_lost", lambda _: None)
    monkeypatch.setattr(engine, "jvm_of", lambda _: None)
    tries: list[int] = []
    session = object()

    def start() -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ConfigError("no Java here")
        return session

    async def test() -> None:
        supervisor = Supervisor()
        spark = Engine(start, supervisor, SYSTEM)
        spark.open()
        with pytest.raises(ConfigError, match="no Java here"):
            await spark.session()
        assert spark.trouble == "Spark does not start: no Java here"
        async with asyncio.timeout(5):
            while not spark.has_started:
                await asyncio.sleep(0.01)
        assert await spark.session() is session
        assert spark.trouble is None
        assert supervisor.failing() == []
        await spark.stop()

    asyncio.run(test())


def test_figures_say_what_died(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{server.http}/metrics")
        figures = answer.read().decode()
        answer.close()
    assert 'noonmark_work_deaths_total{kind="committer"} 0.0' in figures
    assert 'noonmark_work_failing{kind="committer"} 0.0' in figures
    assert "noonmark_spark_restarts_total 0.0" in figures
    assert "noonmark_ready 1.0" in figures
