"""No process that a test starts compiles what another one has compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import noonmark


def test_what_a_process_imports_is_compiled_once() -> None:
    look = "import noonmark.errors as e; print(e.__spec__.cached)"
    cached = subprocess.check_output([sys.executable, "-c", look], text=True).strip()
    assert cached.endswith(".pyc")
    assert Path(cached).exists(), "the next process has to compile it again"
    assert not sys.dont_write_bytecode


def test_the_front_door_starts_processes_that_keep_bytecode() -> None:
    """Also where the environment says otherwise."""
    root = Path(noonmark.__file__).parents[2]
    look = ["make", "-s", "--eval", "shown: ; @echo [$$PYTHONDONTWRITEBYTECODE]", "shown"]
    given = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.check_output(look, cwd=root, env=given, text=True).strip() == "[]"
