"""The front ends in a thread of their own, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.persist.client import Options
from noonmark.serve.pgwire.server import Limits
from noonmark.serve.start import Server, start
from noonmark.serve.tls import Tls
from support.serve.reading import NoSpark
from support.serve.sessions import Scripted

T = TypeVar("T")

#: A key and its certificate for "localhost", made for the tests alone.
CERTIFICATE = Path(__file__).with_name("pgwire_certificate.pem")
ANYWHERE = ("127.0.0.1", 0)


class Front:
    """Front ends and their event loop; a subclass says what they serve."""

    server: Server

    def __init__(self, work: Coroutine[Any, Any, Server]) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()
        self.server = self.run(work)
        self.host, self.port = self.server.pg_address
        self.http = "{}:{}".format(*self.server.http_address)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def dsn(self, user: str = "bob", **more: str) -> str:
        words = {"host": self.host, "port": self.port, "user": user, "dbname": "d", **more}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait for something that the server does in its own time."""
        pause = threading.Event()
        for _ in range(1_000):
            if happened():
                return
            pause.wait(0.01)
        raise AssertionError("it never happened")

    def close(self) -> None:
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    async def _stop(self) -> None:
        await self.server.stop()

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


class Host(Front):
    """Front ends over scripted sessions."""

    sessions: Scripted

    def __init__(
        self,
        limits: Limits | None = None,
        trust_local: bool = True,
        tls: Tls | None = None,
    ) -> None:
        super().__init__(self._start(limits, trust_local, tls))

    async def _start(self, limits: Limits | None, trust_local: bool, tls: Tls | None) -> Server:
        self.sessions = Scripted()
        return await start(
            self.sessions,
            pg=ANYWHERE,
            http=ANYWHERE,
            tls=tls,
            limits=limits,
            trust_local=trust_local,
        )


class DatabaseHost(Front):
    """Front ends over a real database: in memory and without Spark, unless they are given."""

    database: Database

    def __init__(self, place: str | None = None, spark: Any = None) -> None:
        super().__init__(self._start(place or f"memory:{SYSTEM.fresh_id()}", spark or NoSpark()))

    async def _start(self, place: str, spark: Any) -> Server:
        self.database = await Database.open(place, session=spark, options=Options(notify_host=None))
        return await start(self.database, pg=ANYWHERE, http=ANYWHERE)

    async def _stop(self) -> None:
        await super()._stop()
        await self.database.close()
