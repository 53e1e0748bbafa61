"""Backups of a server under load, each restored and compared with the server that went on.

Clients move money between accounts, note each transfer in a second table in the same transaction,
and a view sums the accounts. A backup is made by `noonmark backup` beside the server, restored by
`noonmark restore`, and read by `noonmark.read` in this process. A violation is

    differs    a relation of the copy at a time is not what the server answers AS OF that time
    torn       the copy's accounts do not have all the money, or not what its transfers say
    damaged    `noonmark shard verify` finds something in the copy
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import noonmark
from support.serve.process import Server, serving

ACCOUNTS, CENTS = 50, 1_000
RELATIONS = ("account", "transfer", "total")


def back_up(folder: Path, times: int, seed: int) -> tuple[list[str], Counter[str]]:
    """So many backups; returns violations, and what was done."""
    wrong: list[str] = []
    done = Counter[str]()
    stopping = threading.Event()
    with serving(folder / "data") as server:
        _set_up(server)
        load = threading.Thread(target=_transfer, args=(server, seed, stopping, done))
        load.start()
        try:
            for number in range(times):
                stopping.wait(0.3)
                copy = folder / f"copy-{number}"
                _noonmark("backup", folder / "store", "--data", folder / "data", "--keep", 3)
                _noonmark("restore", folder / "store", "--data", copy)
                wrong += [f"backup {number}: {each}" for each in _compare(server, copy)]
                done["backups restored"] += 1
        finally:
            stopping.set()
            load.join()
    return wrong, done


def _set_up(server: Server) -> None:
    with server.connect() as link:
        link.execute("create table account (id int primary key, cents int)")
        link.execute("create table transfer (giver int, taker int, cents int)")
        values = ", ".join(f"({number}, {CENTS})" for number in range(ACCOUNTS))
        link.execute(f"insert into account values {values}")
        link.execute(
            "create materialized view total as "
            "select id % 5 as branch, count(*) as n, sum(cents) as cents from account group by 1"
        )
        link.execute("select * from total")


def _transfer(server: Server, seed: int, stopping: threading.Event, done: Counter[str]) -> None:
    random = Random(seed)
    with server.connect() as link:
        while not stopping.is_set():
            giver, taker = random.sample(range(ACCOUNTS), 2)
            cents = random.randrange(1, 20)
            with link.transaction():
                link.execute("update account set cents = cents - %s where id = %s", (cents, giver))
                link.execute("update account set cents = cents + %s where id = %s", (cents, taker))
                link.execute("insert into transfer values (%s, %s, %s)", (giver, taker, cents))
            done["transfers"] += 1


def _compare(server: Server, copy: Path) -> list[str]:
    newest = [noonmark.read(copy, name).as_of for name in RELATIONS]
    time = min(newest)
    there = {name: noonmark.read(copy, name, as_of=time).rows() for name in RELATIONS}
    found = [
        f"differs: {name} as of {time}"
        for name, rows in there.items()
        if sorted(rows) != sorted(_asked(server, name, time))
    ]
    cents = dict.fromkeys(range(ACCOUNTS), CENTS)
    for giver, taker, moved in there["transfer"]:
        cents[giver] -= moved
        cents[taker] += moved
    if cents != dict(there["account"]):
        found.append(f"torn: accounts as of {time} are not what the transfers say")
    report = json.loads(_noonmark("shard", "verify", "--data", copy, "--json"))
    return found + [f"damaged: {each}" for each in report["findings"]]


def _asked(server: Server, name: str, time: int) -> list[tuple[Any, ...]]:
    with server.connect() as link:
        return link.execute(f"select * from {name} as of {time}".encode()).fetchall()


def _noonmark(*words: object) -> str:
    command = [sys.executable, "-m", "noonmark", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
