"""What the figures of certainty have shown, and of which code.

A run is evidence about the code that it judged and about no other. So what a whole run showed is
kept, in ``evidence.json`` beside the figures, with a digest of that code: of every file that the
figure reaches by imports, those inside of functions too, and by the names of modules that it starts
as processes.

Law: a figure *stands* if its last whole run met its goal and its digest is today's. A change of any
file that a figure reaches makes its evidence old; a change of any other file does not.

    python -m bench certainty --keep              keeps what this run shows
    python -m bench certainty --keep --old        runs only the figures that do not stand
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from bench.figure import ROOT, Figure
from noonmark.clock import SYSTEM
from tests.support.house.repository import imports, python_files, tree

_NAME = "evidence.json"
#: Where names of modules begin.
_ROOTS = (ROOT / "src", ROOT / "tests")
#: Has doors to everything: whoever imports a room does not come through them.
_PACKAGE = ROOT / "src" / "noonmark" / "__init__.py"


@dataclass(frozen=True)
class Evidence:
    """One whole run of a figure."""

    day: str
    seed: int
    goal: str
    value: float
    met: bool
    note: str
    digest: str


def read(folder: Path) -> dict[str, Evidence]:
    """The last whole runs of the figures in `folder`, by the stems of their files."""
    kept = folder / _NAME
    if not kept.exists():
        return {}
    return {stem: Evidence(**fields) for stem, fields in json.loads(kept.read_text()).items()}


def keep(path: Path, figure: Figure, seed: int, digest: str) -> None:
    """Put the run of the figure at `path` in place of the one before it.

    `digest` is that of before the run: who edits files meanwhile has evidence of what is gone.
    """
    if figure.value is None:
        return
    day = datetime.fromtimestamp(SYSTEM.now_ms() / 1000, UTC).date().isoformat()
    run = Evidence(day, seed, figure.goal, figure.value, figure.met, figure.note, digest)
    runs = {**read(path.parent), path.stem: run}
    shown = {stem: asdict(runs[stem]) for stem in sorted(runs)}
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    (path.parent / _NAME).write_text(text + "\n")


def stands(path: Path) -> bool:
    """Whether the figure at `path` needs no new run."""
    run = read(path.parent).get(path.stem)
    return run is not None and run.met and run.digest == digest_of(path)


def digest_of(path: Path) -> str:
    """Of the code that the figure at `path` judges, and of its judge."""
    whole = hashlib.sha256()
    for each in sorted(reached(path)):
        text = each.read_bytes()
        whole.update(f"{os.path.relpath(each, ROOT)}\0{len(text)}\0".encode() + text)
    return whole.hexdigest()[:16]


def reached(path: Path) -> set[Path]:
    """The files that `path` imports or starts, and what those do; who runs tests reaches all."""
    found, waiting = {path}, [path]
    while waiting:
        new = _next(waiting.pop()) - found
        found |= new
        waiting += new
    if any("pytest.main(" in each.read_text() or _runs(each, "pytest") for each in found):
        found |= set(python_files("src", "tests"))
    return found


@cache
def _next(path: Path) -> frozenset[Path]:
    if path == _PACKAGE:
        return frozenset()
    names = [*imports(path), *_started(path)]
    return frozenset((*_files(names, _ROOTS), *_beside(path)))


def _started(path: Path) -> Iterator[str]:
    """Names of modules that `path` has as text: what it runs with ``python -m``."""
    if _runs(path, "noonmark"):
        yield "noonmark.__main__"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and re.fullmatch(r"\w+(\.\w+)+", str(node.value)):
            yield from (str(node.value), f"support.{node.value}")


def _runs(path: Path, module: str) -> bool:
    """Whether a command in `path` has ``-m module``."""
    lists = (n.elts for n in ast.walk(tree(path)) if isinstance(n, ast.List | ast.Tuple))
    pairs = itertools.chain.from_iterable(map(itertools.pairwise, lists))
    texts = ([getattr(each, "value", None) for each in pair] for pair in pairs)
    return ["-m", module] in texts


def _beside(path: Path) -> Iterator[Path]:
    """The files that `path` names from where it stands: ``from .model import ...``."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1]
            inside = [
                f"{node.module}.{each.name}" if node.module else each.name for each in node.names
            ]
            yield from _files(inside, [folder])


def _files(names: Iterable[str], roots: Iterable[Path]) -> Iterator[Path]:
    """The files of the modules called so, with the packages that they stand in."""
    for name, root in itertools.product(names, roots):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            place = root.joinpath(*parts[:length])
            files = (place.with_suffix(".py"), place / "__init__.py")
            yield from (file for file in files if file.is_file())
