"""`noonmark demo`: it shows what it promises, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

import psycopg
import pytest

_PORTS = ("--pg", "127.0.0.1:0", "--http", "127.0.0.1:0")
_COMMAND = [sys.executable, "-m", "noonmark", "demo", *_PORTS]


@pytest.mark.spark
def test_nothing_changes_when_it_is_killed() -> None:
    done = subprocess.run(
        [*_COMMAND, "--seconds", "1"], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert "killed with -9; served again after" in done.stdout
    assert "a PostgreSQL in which money moves" in " ".join(done.stdout.split())
    assert "every view (6) equal to its definition" in " ".join(done.stdout.split())
    assert "NO" not in re.findall(r"\b(yes|NO)\b", done.stdout)
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.server
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_its_server(how: signal.Signals) -> None:
    demo = subprocess.Popen(
        _COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert demo.stdout is not None
    port = None
    for line in demo.stdout:
        found = re.search(r"psql -h 127\.0\.0\.1 -p (\d+)", line)
        if found is not None:
            port = int(found[1])
            break
    assert port is not None
    demo.send_signal(how)
    told, complaints = demo.communicate(timeout=60)
    assert (demo.returncode, "stopped" in told, complaints) == (0, True, "")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=port, user="noonmark", connect_timeout=5)


@pytest.mark.server
def test_an_interrupt_ends_a_server_that_is_on_its_way_up(tmp_path: Path) -> None:
    """And a second one, of somebody who does not like to wait, changes nothing."""
    demo = subprocess.Popen(
        _COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    server = _begun_by(demo)
    for _ in range(2):
        demo.send_signal(signal.SIGINT)
        Event().wait(0.1)
    told, complaints = demo.communicate(timeout=60)
    assert (demo.returncode, told, complaints) == (0, "\nstopped\n", "")
    assert not Path(f"/proc/{server}").exists()
    assert list(tmp_path.iterdir()) == []


def _begun_by(demo: subprocess.Popen[str]) -> int:
    """The number of the server's process, as soon as there is one."""
    while demo.poll() is None:
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        for each in children:
            with suppress(OSError):
                if b"\0serve\0" in Path(f"/proc/{each}/cmdline").read_bytes():
                    return int(each)
    raise AssertionError(demo.communicate())
