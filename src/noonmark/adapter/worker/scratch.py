"""Folders for files that live as long as their process: whoever is killed leaves one behind.

Law: `scratch_folder` removes the folders of processes that are gone, and none of one that lives.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "noonmark-scratch-"


def scratch_folder() -> Path:
    """A new folder that only this user can look into."""
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        process = old.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdigit() and not _lives(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
