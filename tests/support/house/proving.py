"""What every proof of a certainty figure does alike: its options, its progress, its answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from noonmark.clock import SYSTEM

#: How often a run that nobody watches writes how far it is.
TOLD_EVERY_S = 30.0


class Advance(Protocol):
    """Moves the bar on."""

    def __call__(self, steps: int = 1) -> None: ...


def options(argv: Sequence[str], count: int, what: str) -> argparse.Namespace:
    """``--seed`` and ``--count``: how many of `what`, the figure's number by default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="the seed of every generator")
    parser.add_argument("--count", type=int, default=count, help=what)
    return parser.parse_args(list(argv))


@contextmanager
def bar(title: str, total: int) -> Iterator[Advance]:
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total)
        told = SYSTEM.monotonic()

        def advance(steps: int = 1) -> None:
            nonlocal told
            progress.advance(task, steps)
            if not console.is_terminal and SYSTEM.monotonic() - told > TOLD_EVERY_S:
                told = SYSTEM.monotonic()
                print(f"{title}: {progress.tasks[0].completed:.0f} of {total}", flush=True)

        yield advance


def answer(
    title: str, goal: str, violations: Sequence[str], faults: Mapping[str, int], note: str = ""
) -> dict[str, Any]:
    """The figure: its violations, of so many faults; a run without a fault proves nothing."""
    for violation in violations:
        print(f"violation: {violation}")
    injected = ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items()))
    print(f"faults injected: {injected}")
    print(f"violations: {len(violations)}")
    return {
        "title": title,
        "value": len(violations),
        "unit": "violations",
        "goal": goal,
        "met": not violations and sum(faults.values()) > 0,
        "measures": {kind: float(count) for kind, count in faults.items()},
        "note": "; ".join(part for part in (note, f"faults: {injected}") if part),
    }
