"""C11, wide: 2,000 clients of a server beyond loopback, with TLS alone, and rows of 50 MB.

A `noonmark serve` listens on all addresses with a certificate and a password. A violation is a
client without TLS or without the password that gets in, one of 2,000 that does not, or has no
answer, a row of 50 MB that comes back as another, or more memory than that may take.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.serve.host import CERTIFICATE
from support.serve.process import command

PASSWORD = "wide and far"
ROW_BYTES = 50_000_000
#: What an idle client may take of the server.
CLIENT_BYTES_MAX = 250_000
_READY = re.compile(r"ready pg=\S+:(\d+) ")


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 2_000, "connections")
    with tempfile.TemporaryDirectory() as folder, _serving(Path(folder)) as (port, pid):
        violations, done = asyncio.run(_run(port, pid, chosen.count))
    return answer("many clients", f"0 with {chosen.count} connections", violations, done)


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[tuple[int, int]]:
    config = folder / "noonmark.toml"
    config.write_text(f'tls_certificate = "{CERTIFICATE}"\ntrust = "nobody"\n')
    wide = ("--pg", "0.0.0.0:0", "--http", "127.0.0.1:0", "--config", str(config))
    process = subprocess.Popen(
        command("--data", str(folder / "data"), *wide),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "NOONMARK_PASSWORD": PASSWORD},
    )
    try:
        assert process.stdout is not None
        found = _READY.match(process.stdout.readline())
        assert found is not None
        yield int(found[1]), process.pid
    finally:
        process.kill()
        process.wait()


def _own_address() -> str:
    """An address of this machine that is not loopback: no packet is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def _resident(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def _run(port: int, pid: int, count: int) -> tuple[list[str], Counter[str]]:
    host, violations, done = _own_address(), list[str](), Counter[str]()

    async def connected(sslmode: str = "require", password: str = PASSWORD) -> Any:
        return await psycopg.AsyncConnection.connect(
            host=host, port=port, user="noonmark", dbname="noonmark", password=password,
            sslmode=sslmode, autocommit=True, connect_timeout=120,
        )  # fmt: skip

    for refused in ({"sslmode": "disable"}, {"password": "guessed"}):
        done["refused"] += 1
        with contextlib.suppress(psycopg.OperationalError):
            await connected(**refused)
            violations.append(f"a client got in with {refused}")
    first = await connected()
    await _rows(first, violations, done)
    before, clients, turn = _resident(pid), list[Any](), asyncio.Semaphore(20)

    async def one(number: int) -> None:
        async with turn:
            try:
                clients.append(await connected())
                done["clients"] += 1
            except psycopg.Error as error:
                violations.append(f"client {number}: {error}")

    await asyncio.gather(*map(one, range(count)))
    each = (_resident(pid) - before) / max(1, len(clients))
    if each > CLIENT_BYTES_MAX:
        violations.append(f"a client takes {each:.0f} bytes")

    async def asks(client: Any) -> None:
        async with turn:
            row = await (await client.execute("select 1")).fetchone()
            done["answers"] += 1
            if row != (1,):
                violations.append(f"the answer is {row}")

    await asyncio.gather(*map(asks, clients))
    await asyncio.gather(*(client.close() for client in (first, *clients)))
    return violations, done


async def _rows(client: Any, violations: list[str], done: Counter[str]) -> None:
    """A row of 50 MB there and back."""
    await client.execute("create table wide (a int, b text)")
    text = "".join(chr(ord("a") + at % 26) for at in range(1_000)) * (ROW_BYTES // 1_000)
    await client.execute("insert into wide values (1, %s)", [text])
    row = await (await client.execute("select b from wide where a = 1")).fetchone()
    done["bytes of a row"] += ROW_BYTES
    if row != (text,):
        violations.append("a row of 50 MB came back as another")


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
