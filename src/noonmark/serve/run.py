"""A server: one database and its front ends, from the first byte to a clean end.

`serving` opens the database and listens; whoever entered it is told where. Fast reads and writes to
tables are answered from then on, while Spark still starts. `run` is that for a process: it prints
one line when it serves, and stops at SIGTERM or SIGINT.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from noonmark.adapter.database import Database
from noonmark.errors import ConfigError
from noonmark.serve.metrics_sources import SourceFigures
from noonmark.serve.start import Address, shown, start
from noonmark.serve.tls import Tls

LOG = logging.getLogger("noonmark")


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


@dataclass(frozen=True)
class Running:
    """A server that serves, and where."""

    database: Database
    pg: Address
    http: Address

    @property
    def line(self) -> str:
        """What `noonmark serve` prints."""
        return f"ready pg={shown(self.pg)} http={shown(self.http)}"


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Running]:
    """A server for the length of a block.

    Raises:
        LockHeld: another process writes to the location; says who.
        ConfigError: an address that cannot be listened on.
    """
    async with AsyncExitStack() as stack:
        database = await Database.open(
            settings.data, settings.consensus, spark_master=settings.spark
        )
        stack.push_async_callback(database.close)
        server = await start(
            database,
            pg=settings.pg,
            http=settings.http,
            tls=settings.tls,
            trust_local=settings.trust_local,
            clock=database.clock,
        )
        stack.push_async_callback(server.stop)
        server.figures.registry.register(SourceFigures(database))
        yield Running(database, server.pg_address, server.http_address)


def run(settings: Settings) -> None:
    """Serve until a signal comes; blocks."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with serving(settings) as running:
        sys.stdout.write(running.line + "\n")
        sys.stdout.flush()
        LOG.info("serving %s", settings.data)
        await stop.wait()
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


def trust(text: str) -> bool:
    """Whether users without a password may come from this machine.

    >>> trust("local"), trust("nobody")
    (True, False)
    """
    if text not in ("local", "nobody"):
        raise ConfigError(f'trust is "local" or "nobody", not "{text}"')
    return text == "local"
