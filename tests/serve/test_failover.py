"""A standby takes over when the server that writes dies or stops, and nothing is lost."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from noonmark.clock import SYSTEM
from support.kill.failovers import fail_over, pair
from support.neighbour.servers import PostgresServer, S3Server
from support.serve.process import PORTS, command, serving

pytestmark = [pytest.mark.server, pytest.mark.alone]


def failing_over(*options: str, times: int) -> tuple[list[str], Counter[str]]:
    async def run() -> tuple[list[str], Counter[str]]:
        async with pair(*options) as servers:
            return await fail_over(servers, times)

    return asyncio.run(run())


def test_histories_over_failovers_are_strictly_serializable(tmp_path: Path) -> None:
    wrong, done = failing_over("--data", str(tmp_path), times=2)
    # How long it takes is measured where nobody else uses the machine: make prove ONLY=C20.
    assert [each for each in wrong if not each.startswith("late")] == []
    assert done["writers killed"] == 2
    assert done["operations"] >= 40


def test_on_an_object_store_the_lease_decides(
    s3_server: S3Server, postgres_server: PostgresServer
) -> None:
    name = SYSTEM.fresh_id()
    options = ("--data", s3_server.url(name), "--consensus", postgres_server.consensus_url(name))
    wrong, _ = failing_over(*options, times=1)
    # How long it takes is measured where nobody else uses the machine: make prove ONLY=C20.
    assert [each for each in wrong if not each.startswith("late")] == []


def test_a_standby_that_is_stopped_ends(tmp_path: Path) -> None:
    with serving(tmp_path):
        standby = subprocess.Popen(
            command("--data", str(tmp_path), *PORTS, "--standby"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert standby.stderr is not None
        assert "standing by: the location is being written by" in standby.stderr.readline()
        standby.send_signal(signal.SIGTERM)
        said, _ = standby.communicate(timeout=20)
        assert (standby.returncode, said) == (0, "")


def test_a_reader_cannot_stand_by() -> None:
    done = subprocess.run(
        command("--read-only", "--standby"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--read-only never writes" in done.stderr
