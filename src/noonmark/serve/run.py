"""A server: one database and its front ends, from the first byte to a clean end.

`serving` opens the database and listens; whoever entered it is told where. Fast reads and writes to
tables are answered from then on, while Spark still starts. `run` is that for a process: it prints
one line when it serves, and stops at SIGTERM or SIGINT.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

from noonmark.adapter.catalog.item import BUILT_IN
from noonmark.adapter.database import Database
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.statement.ddl.role import first_password
from noonmark.adapter.worker.limits import Limits
from noonmark.errors import ConfigError
from noonmark.loops import new_loop
from noonmark.persist.impl.redact import redact
from noonmark.serve.garbage import Collector
from noonmark.serve.log import Form, start_log
from noonmark.serve.loop_watch import LoopWatch
from noonmark.serve.metrics.processes import ProcessFigures
from noonmark.serve.metrics.sources import SourceFigures
from noonmark.serve.metrics.storage import StorageFigures
from noonmark.serve.metrics.views import ViewFigures
from noonmark.serve.metrics.work import WorkFigures
from noonmark.serve.pgwire.server import Limits as WireLimits
from noonmark.serve.pgwire.wire import is_loopback
from noonmark.serve.start import Address, shown, start
from noonmark.serve.tls import Tls
from noonmark.serve.turn import WRITING, Stopped, Turn
from noonmark.source.outgoing import ALLOW, DENY, STRICT, policy

LOG = logging.getLogger("noonmark")
_STACK_BYTES = 100 << 20


@dataclass(frozen=True)
class Settings:
    """What a server is told."""

    data: str
    consensus: str | None = None
    spark: str = "local[*]"
    pg: Address = ("127.0.0.1", 6875)
    http: Address = ("127.0.0.1", 6876)
    tls: Tls | None = None
    trust_local: bool = True
    log_format: Form = "text"
    connect_allow: str | None = None
    connect_deny: str | None = None
    files_root: str = ""
    own_files: tuple[str, ...] = ()
    metrics: Address | None = None
    metrics_token: str | None = field(default=None, repr=False)
    otlp: str | None = None
    password: str | None = field(default=None, repr=False)
    insecure_listen: bool = False
    read_only: bool = False
    standby: bool = False
    limits: Limits = Limits()  # noqa: RUF009 - frozen


@dataclass(frozen=True)
class Running:
    """A server that serves, and where."""

    database: Database
    pg: Address
    http: Address
    metrics: Address | None = None

    @property
    def line(self) -> str:
        """What `noonmark serve` prints."""
        return f"ready pg={shown(self.pg)} http={shown(self.http)}"


@asynccontextmanager
async def serving(settings: Settings, stop: asyncio.Event | None = None) -> AsyncIterator[Running]:
    """A server for the length of a block; `stop` ends the wait for its turn.

    Raises:
        LockHeld: another process writes to the location; says who.
        Stopped: it had not its turn until then.
        ConfigError: an address that cannot be listened on, or not without TLS and passwords.
    """
    _let_out(settings)
    async with AsyncExitStack() as stack:
        # Arrow imports it with its first value: then the loop would, in its first write.
        reading = asyncio.ensure_future(asyncio.to_thread(import_module, "pandas"))
        database = await _opened(settings, stop or asyncio.Event())
        stack.push_async_callback(database.close)
        database.workers.warm_soon()
        if settings.otlp:
            await asyncio.to_thread(database.telemetry.start, settings.otlp)
        if settings.password and not settings.read_only:
            await first_password(database, settings.password)
        await _check_listening(settings, database)
        await reading
        server = await start(
            database,
            pg=settings.pg,
            http=settings.http,
            tls=settings.tls,
            trust_local=settings.trust_local,
            metrics=settings.metrics,
            metrics_token=settings.metrics_token,
            limits=WireLimits(
                connections=settings.limits.connections,
                receive_mb=settings.limits.receive_memory_mb,
            ),
            clock=database.clock,
        )
        stack.push_async_callback(server.stop)
        stopping = threading.Event()
        stack.callback(stopping.set)
        watch = LoopWatch(asyncio.get_running_loop(), stopping, database.clock)
        database.supervisor.thread("loop watch", "", watch.run, stopping)
        for figures in (SourceFigures, ViewFigures, StorageFigures, WorkFigures):
            server.figures.registry.register(figures(database))
        server.figures.registry.register(ProcessFigures())
        yield Running(database, server.pg_address, server.http_address, server.metrics_address)


async def _opened(settings: Settings, stop: asyncio.Event) -> Database:
    if settings.read_only:
        from noonmark.adapter.replica.database import ReadOnlyDatabase  # door: only who needs it

        return await ReadOnlyDatabase.follow(
            settings.data,
            settings.consensus,
            spark_master=settings.spark,
            limits=settings.limits,
        )
    opening = partial(
        Database.open,
        settings.data,
        settings.consensus,
        options=WRITING,
        spark_master=settings.spark,
        files_roots=settings.files_root,
        own_files=settings.own_files,
        limits=settings.limits,
    )
    turn = Turn(settings.data, settings.consensus, settings.standby, stop)
    return await turn.await_in(opening)


def _wide(settings: Settings) -> list[Address]:
    """Where it listens beyond this machine."""
    return [place for place in (settings.pg, settings.http) if not is_loopback(place[0])]


def _let_out(settings: Settings) -> None:
    """Say where connections may go: to this process, and to the executors that it starts."""
    deny = settings.connect_deny
    if deny is None and DENY not in os.environ and _wide(settings):
        deny = STRICT
    for name, value in ((ALLOW, settings.connect_allow), (DENY, deny)):
        if value is not None:
            os.environ[name] = value
    policy()  # a list that cannot be read is refused here


async def _check_listening(settings: Settings, database: Database) -> None:
    """Refuse to listen beyond this machine in clear, or where no password is asked for.

    Raises:
        ConfigError: it would.
    """
    wide = _wide(settings)
    if not wide or settings.insecure_listen:
        return
    if settings.tls is None:
        raise ConfigError(
            f"listening on {shown(wide[0])} without TLS",
            detail="Passwords and rows would be read by whoever is on the way.",
            hint="Give a tls_certificate, listen on 127.0.0.1, or say --insecure-listen.",
        )
    if await database.verifier(BUILT_IN) is None:
        raise ConfigError(
            f"listening on {shown(wide[0])} while the superuser has no password",
            hint="Set NOONMARK_PASSWORD or --password-file once, or say --insecure-listen.",
        )


def run(settings: Settings) -> None:
    """Serve until a signal comes; blocks."""
    start_log(settings.log_format)
    # The loop gets its turn soon though texts are planned in other threads. A request is some ten
    # turns: beside three such threads 63 ms with 0.5 ms, 25 ms with this.
    sys.setswitchinterval(0.0001)
    with contextlib.suppress(ValueError, OSError):
        # Plans are trees: the stack may grow. Where the system says less, it is less.
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, hard))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_run(settings))


def _settle(database: Database, stopping: threading.Event) -> None:
    """What is there now, and once Spark is there, stays; the rest is looked at now and then."""
    retry = database.engine.on_back

    def on_back() -> None:
        retry()
        collector.settle()

    collector = Collector()
    collector.settle()
    database.engine.on_back = on_back
    collect = partial(collector.run, stopping, lambda: PLANNER.is_busy)
    database.supervisor.thread("garbage", "", collect, stopping)


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with contextlib.suppress(Stopped):
        await _serve_until(stop, settings)


async def _serve_until(stop: asyncio.Event, settings: Settings) -> None:
    async with serving(settings, stop) as running:
        sys.stdout.write(running.line + "\n")
        sys.stdout.flush()
        LOG.info("serving %s", redact(settings.data))
        stopping = threading.Event()
        _settle(running.database, stopping)
        await stop.wait()
        stopping.set()
        LOG.info("stopping")


def address(text: str) -> Address:
    """HOST:PORT.

    >>> address("127.0.0.1:0"), address("[::1]:6875")
    (('127.0.0.1', 0), ('::1', 6875))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535 or not host:
        raise ConfigError(f'"{text}" is not HOST:PORT', hint="127.0.0.1:6875, say.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def tls(certificate: str | None, key: str | None) -> Tls | None:
    """The certificate to show, if there is one.

    Raises:
        ConfigError: a key without a certificate.
    """
    if certificate is None:
        if key is not None:
            raise ConfigError("there is a tls_key, and no tls_certificate")
        return None
    return Tls(Path(certificate), Path(key) if key else None)


def secret_of(variable: str, file: str | None) -> str | None:
    """A secret of the environment, or of a file.

    Raises:
        ConfigError: the file cannot be read.
    """
    if file is None:
        return os.environ.get(variable) or None
    try:
        return Path(file).read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'"{file}" cannot be read', detail=type(error).__name__) from None


def trust(text: str) -> bool:
    """Whether users without a password may come from this machine.

    >>> trust("local"), trust("nobody")
    (True, False)
    """
    if text not in ("local", "nobody"):
        raise ConfigError(f'trust is "local" or "nobody", not "{text}"')
    return text == "local"
