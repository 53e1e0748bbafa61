"""A standby takes over when the server that writes dies or stops, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from noonmark.clock import SYSTEM
from support.failovers import fail_over, pair
from support.serve_process import PORTS, command, serving
from support.servers import PostgresServer, S3Server

pytestmark = [pytest.mark.server, pytest.mark.alone]


def test_clients_are_back_and_nothing_is_lost(tmp_path: Path) -> None:
    with pair("--data", str(tmp_path)) as servers:
        wrong, waits_s = fail_over(servers, 3)
    assert wrong == []
    assert waits_s, "clients were cut off"


def test_on_an_object_store_the_lease_decides(
    s3_server: S3Server, postgres_server: PostgresServer
) -> None:
    name = SYSTEM.fresh_id()
    options = ("--data", s3_server.url(name), "--consensus", postgres_server.consensus_url(name))
    with pair(*options) as servers:
        wrong, _ = fail_over(servers, 1)
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
