"""The demo: a server with live sources and views, shown live, all verified at the end."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import AsyncExitStack

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from noonmark.clock import SYSTEM
from noonmark.demo.scenario import HOUSE, Scenario
from noonmark.demo.show import (
    audits_table,
    frontiers_table,
    readings_table,
    sources_table,
    views_table,
)
from noonmark.errors import ConfigError, IntegrityError
from noonmark.serve.run import Running, Settings, serving
from noonmark.shard.verify import verify

_REFRESH_S = 0.5
_FREE_PORTS = (("127.0.0.1", 0), ("127.0.0.1", 0))


def run(seconds: int, data: str | None) -> None:
    """Run for some seconds, in a temporary folder unless told otherwise; verify everything."""
    logging.getLogger("noonmark").setLevel(logging.ERROR)
    asyncio.run(_run(Console(), seconds, data))


async def _run(console: Console, seconds: int, data: str | None) -> None:
    async with AsyncExitStack() as stack:
        if data is None:
            data = stack.enter_context(tempfile.TemporaryDirectory(prefix="noonmark-demo-"))
        running = await _serve(stack, data)
        host, port = running.pg
        console.print(f"storage location: {data}")
        console.print(f"the console: http://{running.http[0]}:{running.http[1]}/")
        console.print("a server answers; ask it what you like, from another terminal:\n")
        console.print(f"    psql -h {host} -p {port} -U noonmark -c 'SELECT * FROM house'\n")
        scenario = await Scenario.begin(running.database)
        with console.status("starting Spark, hydrating the views ..."):
            await scenario.ask(HOUSE)
        await _watch(console, scenario, seconds)
        await _verify(console, scenario)


async def _serve(stack: AsyncExitStack, data: str) -> Running:
    """On the usual ports, or on free ones where something else has those."""
    try:
        return await stack.enter_async_context(serving(Settings(data)))
    except ConfigError:
        settings = Settings(data, pg=_FREE_PORTS[0], http=_FREE_PORTS[1])
        return await stack.enter_async_context(serving(settings))


async def _watch(console: Console, scenario: Scenario, seconds: int) -> None:
    """Show what happens, live in a terminal, and once at the end anywhere else."""
    progress = Progress(TextColumn("running"), BarColumn(), TimeRemainingColumn())
    bar = progress.add_task("running", total=seconds)

    async def picture() -> Group:
        house = await scenario.ask(HOUSE)
        tables = Group(
            sources_table(await scenario.sources()),
            frontiers_table(await scenario.frontiers()),
            views_table(await scenario.ticks(), house[0] if house else None),
        )
        return Group(Panel(tables, title="every source on one clock", expand=False), progress)

    end = SYSTEM.monotonic() + seconds
    with Live(await picture(), console=console, refresh_per_second=4, transient=False) as live:
        while (left := end - SYSTEM.monotonic()) > 0:
            await SYSTEM.sleep(min(_REFRESH_S, left))
            progress.update(bar, completed=seconds - max(0.0, left))
            live.update(await picture())
        progress.update(bar, completed=seconds)
        live.update(await picture())
    console.print()


async def _verify(console: Console, scenario: Scenario) -> None:
    """Everything again: answers, views, stored objects.

    Raises:
        IntegrityError: something is not what it was.
    """
    readings = await scenario.read_twice()
    console.print(readings_table(readings))
    audits = await scenario.audit()
    console.print(audits_table(audits))
    client = scenario.database.client
    report = await asyncio.wrap_future(
        client.runtime.submit(verify(client, None, lambda _done, _total: None))
    )
    changed = [reading for reading in readings if not reading.same]
    wrong = [audit.name for audit in audits if audit.differences]
    if changed or wrong or report.findings:
        raise IntegrityError(
            "an answer changed, a view is not its definition, or a stored object is damaged",
            detail=f"{len(changed)} answers, {len(wrong)} views, {len(report.findings)} objects.",
        )
    console.print(
        f"[green]verified[/green] {report.parts} parts and {report.entries} log entries, "
        f"{report.updates:,} stored updates; every answer read again was the same, "
        f"every view ({len(audits)}) equal to its definition"
    )
