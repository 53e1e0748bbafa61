"""The demo: two generators on one clock, views over them on Spark, all verified at the end."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from noonmark.clock import SYSTEM
from noonmark.compute.session import for_ticks, spark_session, stop_session
from noonmark.demo.scenario import Scenario
from noonmark.demo.show import (
    audits_table,
    frontiers_table,
    readings_table,
    sources_table,
    views_table,
)
from noonmark.demo.views import Views
from noonmark.errors import IntegrityError
from noonmark.ingest import SparkEngine
from noonmark.persist.client import open_location
from noonmark.shard.verify import verify

_REFRESH_S = 0.5


def run(seconds: int, data: str | None) -> None:
    """Run for some seconds, in a temporary folder unless told otherwise; verify everything."""
    console = Console()
    with ExitStack() as stack:
        if data is None:
            data = stack.enter_context(tempfile.TemporaryDirectory(prefix="noonmark-demo-"))
        client = stack.enter_context(open_location(data))
        console.print(f"storage location: {data}")
        with console.status("starting Spark ..."):
            spark = for_ticks(spark_session())
            stack.callback(stop_session)
        scenario = Scenario(client, SparkEngine(lambda: spark), Views(client, lambda: spark))
        stack.callback(scenario.stop)
        with console.status("first ticks ..."):
            scenario.start()
        _watch(console, scenario, seconds)
        scenario.stop()
        readings = scenario.read_twice()
        console.print(readings_table(readings))
        audits = scenario.views.audit()
        console.print(audits_table(audits))
        report = client.runtime.submit(verify(client, lambda _done, _total: None)).result()
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


def _watch(console: Console, scenario: Scenario, seconds: int) -> None:
    """Show what happens, live in a terminal, and once at the end anywhere else."""
    progress = Progress(TextColumn("running"), BarColumn(), TimeRemainingColumn())
    bar = progress.add_task("running", total=seconds)

    def picture() -> Group:
        tables = (sources_table(scenario), frontiers_table(scenario), views_table(scenario))
        title = "every source on one clock"
        return Group(Panel(Group(*tables), title=title, expand=False), progress)

    end = SYSTEM.monotonic() + seconds
    with Live(picture(), console=console, refresh_per_second=4, transient=False) as live:
        while (left := end - SYSTEM.monotonic()) > 0:
            scenario.wait(min(_REFRESH_S, left))
            progress.update(bar, completed=seconds - max(0.0, left))
            live.update(picture())
        progress.update(bar, completed=seconds)
        live.update(picture())
