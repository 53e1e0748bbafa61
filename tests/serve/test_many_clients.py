"""Idle clients cost nothing, busy ones get their answers, and memory stays flat.

`SOAK_SECONDS` makes it as long as one likes: 300 is what the figure asks for.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from support.serve.host import DatabaseHost

pytestmark = pytest.mark.alone

IDLE, BUSY = 200, 32
SECONDS = float(os.environ.get("SOAK_SECONDS", "2"))
GROWTH_BYTES_MAX = 24 << 20
IDLE_BYTES_MAX = 100_000


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy(host: DatabaseHost, number: int, until: float, told: list[Any]) -> None:
    """Write, read by key, read a range, roll back, fail: again and again."""
    count = 0
    try:
        with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
            while SYSTEM.monotonic() < until:
                key = number * 1_000 + count % 10
                connection.execute("delete from soak where a = %s", [key])
                connection.execute("insert into soak values (%s, %s)", [key, f"row {count}"])
                for _ in range(20):
                    row = connection.execute("select b from soak where a = %s", [key]).fetchone()
                    assert row == (f"row {count}",)
                with connection.transaction(force_rollback=True):
                    connection.execute("insert into soak values (-1, 'never')")
                count += 1
        told.append(count)
    except BaseException as error:
        told.append(error)
        raise


def round_of(host: DatabaseHost, seconds: float) -> int:
    """All busy clients for some seconds; how often they went round."""
    told: list[Any] = []
    until = SYSTEM.monotonic() + seconds
    clients = [
        threading.Thread(target=busy, args=(host, number, until, told)) for number in range(BUSY)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not [error for error in told if not isinstance(error, int)]
    assert len(told) == BUSY
    return sum(told)


def test_idle_and_busy_clients(database_host: DatabaseHost) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(psycopg.connect(database_host.dsn("noonmark")))
        first.execute("create table soak (a int primary key, b text)")
        first.commit()
        before = resident_bytes()
        lines = [
            stack.enter_context(psycopg.connect(database_host.dsn("noonmark"))) for _ in range(IDLE)
        ]
        # Both ends of a line are in this process: the server's share is less than this.
        assert (resident_bytes() - before) / IDLE < IDLE_BYTES_MAX
        round_of(database_host, SECONDS / 2)
        before = resident_bytes()
        assert round_of(database_host, SECONDS) > BUSY
        assert resident_bytes() - before < GROWTH_BYTES_MAX
        for line in lines:
            assert line.execute("select count(*) from soak where a = -1").fetchone() == (0,)
