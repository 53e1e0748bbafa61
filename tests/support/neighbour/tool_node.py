"""Packages of Node in a folder of their own, as `tools/node/package-lock.json` pins them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.neighbour.tool_venv import LOCKS

NODE = LOCKS / "node"


def node_script(name: str) -> Path:
    """A script beside its packages, which are installed once for each lock, below `.venv`."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    digest = hashlib.sha256((NODE / "package-lock.json").read_bytes()).hexdigest()[:16]
    place = Path(sys.prefix) / "tools" / f"node-{digest}"
    place.mkdir(parents=True, exist_ok=True)
    with (place.parent / "node.making").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            for each in ("package.json", "package-lock.json"):
                shutil.copy(NODE / each, place)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                pytest.fail(f"the packages of Node cannot be installed:\n{done.stderr}")
            (place / "ready").touch()
        shutil.copy(NODE / name, place)
    return place / name
