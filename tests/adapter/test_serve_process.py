"""`noonmark serve` as a process: one ready line, acknowledged means durable, a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import urllib.request
from pathlib import Path

import psycopg
import pytest

from noonmark.errors import ConfigError
from noonmark.serve.command import DEFAULTS, merged
from noonmark.serve.run import address
from support.serve.process import PORTS, Server, command, serving

pytestmark = pytest.mark.server


def insert_until_killed(server: Server, who: int, acknowledged: list[tuple[int, int]]) -> None:
    """Insert one row after another, alone and two tables at a time; note what was acknowledged."""
    try:
        with server.connect() as connection:
            for n in range(100_000):
                with connection.transaction():
                    connection.execute("insert into t values (%s, %s)", (who, n))
                    connection.execute("insert into u values (%s, %s)", (who, n))
                acknowledged.append((who, n))
    except psycopg.OperationalError:
        return


def test_killed_under_load_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with server.connect() as connection:
            connection.execute("create table t (who int, n int, primary key (who, n))")
            connection.execute("create table u (who int, n int)")
        acknowledged: list[tuple[int, int]] = []
        clients = [
            threading.Thread(target=insert_until_killed, args=(server, who, acknowledged))
            for who in range(4)
        ]
        for client in clients:
            client.start()
        while len(acknowledged) < 200:
            assert server.process.poll() is None
            clients[0].join(0.05)
        server.process.kill()
        for client in clients:
            client.join()
    with serving(tmp_path) as server:
        with server.connect() as connection:
            t = set(connection.execute("select who, n from t").fetchall())
            u = set(connection.execute("select who, n from u").fetchall())
        # All that was acknowledged; what was not is in both tables or in none.
        assert set(acknowledged) <= t
        assert t == u
        assert len(t) - len(set(acknowledged)) <= 4
        _second_is_told(tmp_path)
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/healthz") as answer:
            assert answer.status == 200
        server.process.send_signal(signal.SIGTERM)
        out, err = server.process.communicate(timeout=30)
        assert (server.process.returncode, out) == (0, ""), err


def _second_is_told(folder: Path) -> None:
    """A second server on the location says who has it, and ends."""
    second = subprocess.run(
        command("--data", str(folder), *PORTS), capture_output=True, text=True, check=False
    )
    assert (second.returncode, second.stdout) == (1, "")
    assert "the location is being written by" in second.stderr
    assert "HINT" in second.stderr


def test_options_of_the_command_line_win_over_the_file() -> None:
    given = {"pg": "0.0.0.0:1", "http": None}
    stored = {"pg": "0.0.0.0:2", "http": "0.0.0.0:3"}
    assert merged(given, stored) == {**DEFAULTS, "pg": "0.0.0.0:1", "http": "0.0.0.0:3"}
    with pytest.raises(ConfigError, match='"port" is no option'):
        merged({}, {"port": "1"})
    with pytest.raises(ConfigError, match="is text"):
        merged({}, {"pg": 6875})


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    file = tmp_path / "noonmark.toml"
    file.write_text("data = [")
    done = subprocess.run(
        command("--config", os.fspath(file)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize("text", ["", "6875", "host", "host:", "host:x", ":1", "host:99999"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        address(text)
