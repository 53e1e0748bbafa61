"""What importing a module loads: no cycle, and no Spark outside of Spark's rooms.

The first law says that no module needs others to have been imported before it; the second that a
reader, a replica and a statement worker stay small. Both are read from the files: an import counts
if it is done when the module is loaded, so not what stands in functions or is for type checkers. A
module also loads the packages that it is in.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.house.repository import module_name, python_files, tree

#: Where Spark is.
SPARK_ROOMS = (
    "noonmark.compute.jvm",
    "noonmark.compute.layer",
    "noonmark.compute.runner",
    "noonmark.compute.spark",
    "noonmark.compute.view",
    "noonmark.ingest",
    "noonmark.persist.spark",
    "noonmark.adapter.peek.spark",
    "noonmark.rows.spark",
    "noonmark.source.spark",
    "noonmark.spark",
    "pyspark_noonmark",
)

MODULES: dict[str, Path] = {module_name(path): path for path in python_files("src")}


def _loaded(statements: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that are done when these statements are."""
    for each in statements:
        match each:
            case ast.Import() | ast.ImportFrom():
                yield each
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield from _loaded(each.orelse)
            case ast.If() | ast.Try() | ast.With() | ast.ClassDef():
                for part in ("body", "orelse", "handlers", "finalbody"):
                    for inner in getattr(each, part, []):
                        yield from _loaded(inner.body if hasattr(inner, "type") else [inner])


def _named(module: str) -> set[str]:
    """What a module names when it is loaded."""
    found: set[str] = set()
    for each in _loaded(tree(MODULES[module]).body):
        if isinstance(each, ast.Import):
            found |= {alias.name for alias in each.names}
        elif each.module and not each.level:
            inside = {f"{each.module}.{alias.name}" for alias in each.names}
            below = inside & MODULES.keys()
            found |= below
            if len(below) < len(inside) or each.module not in MODULES:
                found.add(each.module)
    return found


def _packages(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


@cache
def _graph() -> dict[str, set[str]]:
    """What each module loads before it is loaded itself; the packages that it is in began before.

    Not when tests are collected: to read all files takes seconds.
    """
    return {
        module: {
            each
            for named in _named(module)
            for each in (named, *_packages(named))
            if each != module and each not in _packages(module)
        }
        for module in MODULES
    }


def _cycles() -> list[list[str]]:
    """Modules that are loaded in each other's course (Tarjan's components of more than one)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(_graph()[module] & MODULES.keys()):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            together = [stack.pop()]
            while together[-1] != module:
                together.append(stack.pop())
            if len(together) > 1:
                found.append(sorted(together))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        for module in sorted(MODULES):
            if module not in index:
                visit(module)
    finally:
        sys.setrecursionlimit(limit)
    return found


def _reach(module: str) -> set[str]:
    """All that importing a module loads."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        next_one = waiting.pop()
        for other in (_graph().get(next_one, set()) | _packages(next_one)) - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def test_no_module_is_loaded_in_the_course_of_itself() -> None:
    assert _cycles() == []


def test_outside_of_its_rooms_nothing_loads_spark() -> None:
    loading = {name for name in MODULES if any(x.split(".")[0] == "pyspark" for x in _reach(name))}
    assert "noonmark.compute.spark.frame" in loading
    assert sorted(name for name in loading if not name.startswith(SPARK_ROOMS)) == []


def test_what_is_read_from_the_files_is_what_python_does() -> None:
    """Of the largest rooms, in a process each."""
    for name in ("noonmark.adapter.database", "noonmark.serve.run", "noonmark.compute.plan.first"):
        look = f"import {name}, sys; print('pyspark' in sys.modules)"
        assert subprocess.check_output([sys.executable, "-c", look], text=True).strip() == "False"
