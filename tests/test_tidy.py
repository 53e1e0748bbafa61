"""The repository itself, under test: what a reader may count on in every file.

Fast and without a JVM: it reads files, and imports `noonmark`, its errors and its command line.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import noonmark
from noonmark import errors
from support.house.repository import (
    ROOT,
    SOURCE,
    code_lines,
    documents,
    imports,
    module_name,
    python_files,
    tracked,
    tree,
)

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 500
FILE_BYTES_MAX = 500_000

# The front door: a new name here is a promise to every user.
EXPORTS: set[str] = {"open", "read"}

# A module is alive when one of these imports it.
IMPORTERS = ("src", "tests", "bench")
ENTRY_POINTS = {"noonmark", "noonmark.cli", "noonmark.__main__", "pyspark_noonmark"}

SOURCES = python_files("src")
EVERY_PYTHON_FILE = python_files("src", "tests", "bench", "dbt-noonmark")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check() -> None:
    assert SOURCE / "errors.py" in SOURCES
    assert ROOT / "README.md" in documents()


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "a module opens with its law or its contract"


def test_contributing_says_the_sizes_that_are_checked() -> None:
    said = (ROOT / "CONTRIBUTING.md").read_text()
    sizes = f"at most {FILE_LINES_MAX} lines, a function fewer than {FUNCTION_LINES_MAX}."
    assert sizes in said


def test_every_marker_is_used() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {each.partition(":")[0] for each in options["markers"]}
    used = {
        node.attr
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    }
    assert markers - used == set()


def test_functions_can_be_read_at_once() -> None:
    long = [
        f"{named(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_files_can_be_read_at_once() -> None:
    lines = {named(path): len(path.read_text().splitlines()) for path in EVERY_PYTHON_FILE}
    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_nothing_was_left_behind() -> None:
    # Spelled in two halves, so that this file does not find itself.
    marker = re.compile(
        r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b|^(<<<<<<<|>>>>>>>) ", re.MULTILINE
    )
    found = [named(path) for path in EVERY_PYTHON_FILE if marker.search(path.read_text())]
    assert found == []


def test_no_large_file_is_tracked() -> None:
    sizes = {named(path): path.stat().st_size for path in tracked()}
    assert {name: size for name, size in sizes.items() if size > FILE_BYTES_MAX} == {}


def test_the_front_door_is_pinned() -> None:
    public = {
        name
        for name, value in vars(noonmark).items()
        if not name.startswith("_")
        and name != "annotations"
        and getattr(value, "__name__", "") != f"noonmark.{name}"
    }
    assert public == EXPORTS
    assert set(getattr(noonmark, "__all__", ())) == EXPORTS


def test_no_module_is_dead() -> None:
    alive = set(ENTRY_POINTS)
    for path in python_files(*IMPORTERS):
        own = module_name(path) if path in SOURCES else None
        for name in imports(path):
            parts = name.split(".")
            alive |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)} - {own}
    assert {module_name(path) for path in SOURCES} - alive == set()


def test_the_vocabulary_needs_no_third_party() -> None:
    allowed = sys.stdlib_module_names | {"noonmark"}
    for path in (path for path in SOURCES if path.is_relative_to(SOURCE / "tvc")):
        foreign = {name for name in imports(path) if name.split(".")[0] not in allowed}
        assert foreign == set(), named(path)


#: Where Spark is: folders, and single files.
SPARK_ROOMS = ("persist/spark/", "compute/", "ingest/engine.py", "adapter/peek/spark.py")
SPARK_FILES = ("spark.py", "spark_write.py", "rows/spark.py", "source/spark.py")


def test_only_the_rooms_of_spark_import_it() -> None:
    using = {path for path in SOURCES if any(n.split(".")[0] == "pyspark" for n in imports(path))}
    found = {str(path.relative_to(SOURCE)) for path in using if path.is_relative_to(SOURCE)}
    assert {name for name in found if not name.startswith((*SPARK_ROOMS, *SPARK_FILES))} == set()


def test_what_is_written_goes_through_storage() -> None:
    """Above Storage nobody creates, seals or holds by commands of the log, nor writes beside it."""
    beside = re.compile(
        r"\bc\.(Create|Acquire|Downgrade|Seal|Expect|Append)\(|\.atomic\(|\bWriteHandle\b"
        r"|\.compare_and_append\(|\.allow_compaction\("
    )
    below = ("persist", "storage")
    found = [
        f"{named(path)}: {match.group()}"
        for path in SOURCES
        if path.is_relative_to(SOURCE) and path.relative_to(SOURCE).parts[0] not in below
        for match in beside.finditer(path.read_text())
    ]
    assert found == []


def test_a_lazy_import_is_a_marked_door() -> None:
    """An import of ours inside of a function has its reason beside it: ``# door: why``."""
    unmarked = []
    for path in SOURCES:
        lines = path.read_text().splitlines()
        functions = [
            node
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = {each for function in functions for each in ast.walk(function)}
        for each in inside:
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("noonmark"):
                beside = lines[max(0, each.lineno - 2) : each.end_lineno]
                if not any(re.search(r"# door: \S", line) for line in beside):
                    unmarked.append(f"{named(path)}:{each.lineno}")
    assert unmarked == []


def test_the_drawn_tree_of_errors_is_the_real_one() -> None:
    def drawn() -> list[tuple[int, str]]:
        lines = re.findall(
            r"^ {4}((?:[│├└─ ]{4})*)(\w+)(?: {2,}\S.*)?$", errors.__doc__ or "", re.M
        )
        return [(len(indent) // 4, name) for indent, name in lines]

    def real(kind: type[errors.NoonmarkError], depth: int = 0) -> list[tuple[int, str]]:
        below = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
        return [(depth, kind.__name__)] + [
            each for child in below for each in real(child, depth + 1)
        ]

    assert drawn() == real(errors.NoonmarkError)


def test_every_error_has_an_id_and_a_sqlstate_of_its_own() -> None:
    kinds = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.NoonmarkError)
    ]
    assert [each for each, count in Counter(kind.id for kind in kinds).items() if count > 1] == []
    for kind in kinds:
        assert "id" in vars(kind), f"{kind.__name__} inherits the id of its parent"
        assert re.fullmatch(r"[0-9A-Z]{5}", kind.sqlstate), kind.__name__


@pytest.mark.parametrize("path", documents(), ids=named)
def test_commands_that_documents_name_exist(path: Path) -> None:
    from noonmark.cli import app

    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = set(app.commands)
    for line in code_lines(path.read_text()):
        if match := re.match(r"(?:\$ )?make ([a-z][a-z-]*)", line):
            assert match[1] in targets, line
        if match := re.match(r"(?:\$ )?(?:\.venv/bin/)?noonmark ([a-z][a-z-]*)", line):
            assert match[1] in commands, line


@pytest.mark.parametrize("path", documents(), ids=named)
def test_links_between_documents_resolve(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text())
    local = [link.split("#")[0] for link in links if "://" not in link and link[0] != "#"]
    assert [link for link in local if not (path.parent / link).exists()] == []


#: Where compute tells relations apart by their class, and why that is not asked of the operators.
DISPATCHES = {
    "compute/operator/table.py": "the table of operators",
    "compute/spark/contents.py": "Spark's forms of the same operators, where Spark is imported",
    "compute/spark/as_written.py": "the judge of large views, which shares nothing with the judged",
}


def _kinds_of_relations() -> set[str]:
    found = tree(SOURCE / "sql" / "ir" / "relation.py").body
    return {
        each.name
        for each in found
        if isinstance(each, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Relation" for base in each.bases)
    }


def _told_apart(node: ast.AST, kinds: set[str]) -> set[str]:
    """The classes of relations by which a piece of code decides what to do."""
    asked: list[ast.AST] = []
    for each in ast.walk(node):
        match each:
            case ast.Match():
                asked += [case.pattern for case in each.cases]
            case ast.Call(func=ast.Name("isinstance"), args=[_, kind]):
                asked.append(kind)
            case ast.Dict():
                asked += [key for key in each.keys if key is not None]
    names = (n.attr for one in asked for n in ast.walk(one) if isinstance(n, ast.Attribute))
    return kinds & set(names)


def test_only_the_table_of_operators_dispatches_on_the_kind_of_a_relation() -> None:
    """A second place that knows three kinds of relations is a second table (style.md)."""
    kinds = _kinds_of_relations()
    assert {"Scan", "Join", "Recursive"} <= kinds
    found = set()
    for path in (each for each in SOURCES if SOURCE / "compute" in each.parents):
        name = str(path.relative_to(SOURCE))
        for statement in tree(path).body:
            parts = statement.body if isinstance(statement, ast.ClassDef) else [statement]
            if any(len(_told_apart(part, kinds)) > 2 for part in parts):
                found.add(name)
    assert found == DISPATCHES.keys()
    table = next(
        each
        for each in tree(SOURCE / "compute/operator/table.py").body
        if isinstance(each, ast.AnnAssign)
    )
    assert _told_apart(table, kinds) == kinds, "an operator for every class of relations"
