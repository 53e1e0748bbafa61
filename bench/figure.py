"""What a figure is, where figures are found, and how one is run.

Contract of a figure's file. Its name starts with its figure's (``f1_bulk_write.py`` is F1). Its
``main(argv)`` takes ``["--seed", "7"]``, may print what it likes, and returns a dict with

    title     what was measured, in a few words
    value     the number, higher or lower being better as the goal says
    unit      of the value: ``x`` (a ratio), ``ms``, ``violations``, ...
    goal      the goal in words, as in ``>= 0.8``
    met       whether the value reaches it
    measures  optional: {name: number}, what the value was made of; they are drawn as bars
    note      optional: rounds, sizes, faults injected

Every figure runs in a process of its own, so that none meets another's JVM, caches or memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Suite:
    """A folder of figures. In a suite of laws a goal that is missed is a failure of the run."""

    name: str
    folder: Path
    letter: str
    is_law: bool


SUITES = {
    "speed": Suite("speed", ROOT / "bench", "f", is_law=False),
    "certainty": Suite("certainty", ROOT / "tests" / "prove", "c", is_law=True),
}


@dataclass(frozen=True)
class Figure:
    """The outcome of one figure; `error` is set when it did not come to a number."""

    id: str
    title: str
    value: float | None = None
    unit: str = ""
    goal: str = ""
    met: bool = False
    measures: dict[str, float] = field(default_factory=dict)
    note: str = ""
    error: str = ""


def figure_id(path: Path) -> str:
    """The figure that a file is of.

    >>> figure_id(Path("bench/f10_point_select.py"))
    'F10'
    """
    return path.stem.split("_")[0].upper()


def discover(suite: Suite, only: Iterable[str] = ()) -> list[Path]:
    """The files of `suite`, by number; those of `only` when it names any.

    Raises:
        ValueError: `only` names a figure that does not exist.
    """
    pattern = re.compile(rf"{suite.letter}(\d+)(_\w+)?\.py")
    found = [path for path in suite.folder.glob("*.py") if pattern.fullmatch(path.name)]
    found.sort(key=lambda path: (int(figure_id(path)[1:]), path.name))
    wanted = {name.strip().upper() for name in only if name.strip()}
    if unknown := wanted - {figure_id(path) for path in found}:
        raise ValueError(f"no figure {', '.join(sorted(unknown))} in {suite.folder.name}")
    return [path for path in found if not wanted or figure_id(path) in wanted]


def run(path: Path, seed: int) -> Figure:
    """Run one figure in a process of its own; what it prints is shown as it comes."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "figure.json"
        command = [sys.executable, "-m", "bench.figure", str(path), str(answer)]
        done = subprocess.run([*command, "--seed", str(seed)], cwd=ROOT, check=False)
        if done.returncode != 0 or not answer.exists():
            return Figure(figure_id(path), path.stem, error=f"exit status {done.returncode}")
        return parse(path, json.loads(answer.read_text()))


def parse(path: Path, answer: dict[str, Any]) -> Figure:
    """The figure that `main` returned; an answer without its fields is an error of that figure."""
    try:
        return Figure(
            id=figure_id(path),
            title=str(answer["title"]),
            value=float(answer["value"]),
            unit=str(answer["unit"]),
            goal=str(answer["goal"]),
            met=bool(answer["met"]),
            measures={str(k): float(v) for k, v in answer.get("measures", {}).items()},
            note=str(answer.get("note", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        return Figure(figure_id(path), path.stem, error=f"bad answer: {error!r}")


def _run_here(path: Path, answer: Path, argv: Sequence[str]) -> None:
    """In the figure's own process: load the file, call its `main`, write what it returns."""
    import importlib.util

    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    answer.write_text(json.dumps(module.main(list(argv))))


if __name__ == "__main__":
    _run_here(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
