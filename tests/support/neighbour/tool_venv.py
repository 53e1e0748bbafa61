"""A tool in a virtual environment of its own: for those whose dependencies are not ours.

`tests/serve/tools/NAME.lock` pins all of it, with hashes; `NAME.in` says what was asked for. The
environment is made once for each lock, below `.venv`, and goes with it.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

LOCKS = Path(__file__).parents[2] / "serve" / "tools"


def tool_python(name: str, lock: Path | None = None) -> Path:
    """The interpreter of a tool's environment, which is made if it is not there."""
    lock = lock or LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    place = Path(sys.prefix) / "tools" / f"{name}-{digest}"
    place.parent.mkdir(exist_ok=True)
    with (place.parent / f"{name}.making").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            _make(place, lock)
    return place / "bin" / "python"


def _make(place: Path, lock: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
    python, uv = place / "bin" / "python", Path(sys.prefix) / "bin" / "uv"
    installers: list[list[str | Path]] = [
        [uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", lock],
        [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock],
    ]
    said = ""
    for command in installers:
        if command[0] == uv and not uv.exists():
            continue
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            (place / "ready").touch()
            return
        said += done.stderr
    pytest.fail(f"{lock.name} cannot be installed:\n{said}")


def run_tool(python: Path, script: Path | str, *arguments: str, **options: object) -> str:
    """What a script says that the tool's interpreter runs; it must end well."""
    command = [str(python), str(script), *arguments]
    done = subprocess.run(  # type: ignore[call-overload]
        command, check=False, capture_output=True, text=True, timeout=280, **options
    )
    assert done.returncode == 0, f"{done.stdout[-6_000:]}\n{done.stderr[-6_000:]}"
    said: str = done.stdout
    return said
