"""The repository as text: its files, its modules, what they import, what its documents name."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "noonmark"


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that git has or would add; without git, every file outside dotted folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        names = [Path(name) for name in listed.stdout.split("\0") if name]
    else:
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        names = [name for name in names if not any(p.startswith(".") for p in name.parts)]
    return tuple(sorted(ROOT / name for name in names if (ROOT / name).is_file()))


def python_files(*folders: str) -> list[Path]:
    return [p for p in tracked() if p.suffix == ".py" and p.relative_to(ROOT).parts[0] in folders]


def documents() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def module_name(path: Path) -> str:
    """``src/noonmark/a/b.py`` is ``noonmark.a.b``; a package is named by its folder."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every dotted name that the file imports, also inside functions; `from a import b` is both.

    Names of modules that are loaded by string (``importlib.import_module("noonmark.x")``) count.
    """
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"noonmark(\.\w+)+", str(node.value)):
            yield str(node.value)


def code_lines(text: str) -> Iterator[str]:
    """What a document shows as code: fenced and indented blocks by line, and `spans`."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()
        else:
            yield from (span.strip() for span in re.findall(r"`([^`]+)`", line))
