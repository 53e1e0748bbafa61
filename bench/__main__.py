"""``python -m bench [speed|certainty] [--only F1,F3] [--seed 7] [--out FOLDER] [--keep] [--old]``.

Exit status 0: every figure came to a number, and in the suite of laws every goal was met.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import evidence
from bench.figure import ROOT, SUITES, Figure, Suite, discover, figure_id, run
from bench.report import number, status, write


def main(argv: Sequence[str], suites: dict[str, Suite] = SUITES) -> int:
    """Run a suite and report; returns the exit status."""
    options = _parser(suites).parse_args(argv)
    suite = suites[options.suite]
    console = Console()
    try:
        paths = discover(suite, options.only.split(","))
    except ValueError as error:
        console.print(str(error), style="red")
        return 2
    if options.old:
        paths = [path for path in paths if not evidence.stands(path)]
    if not paths:
        console.print(f"There are no {suite.name} figures to run.")
        return 0
    figures = _run_all(paths, options, console)
    written = write(figures, options.out / suite.name)
    console.print(_shown(figures))
    console.print(f"written: {', '.join(str(path) for path in written)}", soft_wrap=True)
    return 1 if any(_fails(suite, each) for each in figures) else 0


def _parser(suites: dict[str, Suite]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("suite", nargs="?", default="speed", choices=list(suites))
    parser.add_argument("--only", default="", help="figures to run, such as F1,F3; all by default")
    parser.add_argument("--seed", type=int, default=1, help="the seed of every generator")
    parser.add_argument("--keep", action="store_true", help="keep what the run shows as evidence")
    parser.add_argument("--old", action="store_true", help="only what no kept evidence stands for")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out", help="the report")
    return parser


def _run_all(paths: Sequence[Path], options: argparse.Namespace, console: Console) -> list[Figure]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    figures = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("figures", total=len(paths))
        for path in paths:
            progress.update(task, description=f"{figure_id(path)} {path.stem}")
            digest = evidence.digest_of(path) if options.keep else ""
            done = run(path, options.seed)
            figures.append(done)
            if options.keep:
                evidence.keep(path, done, options.seed, digest)
            progress.console.print(f"{done.id} {status(done)}: {number(done)} (goal {done.goal})")
            progress.advance(task)
    return figures


def _shown(figures: Sequence[Figure]) -> Table:
    shown = Table("figure", "what", "value", "goal", "status")
    for each in figures:
        colour = {"met": "green", "missed": "yellow", "failed": "red"}[status(each)]
        shown.add_row(each.id, each.title, number(each), each.goal, status(each), style=colour)
    return shown


def _fails(suite: Suite, figure: Figure) -> bool:
    return bool(figure.error) or (suite.is_law and not figure.met)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
