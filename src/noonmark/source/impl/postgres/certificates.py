"""Certificates and keys as texts: libpq reads them from files, so they are put into some.

A file is named after its text and lies in a folder that only this process's user can read, which
goes when the process ends. So the same connection string serves on the driver and on executors.

Law: a connection string without such texts comes back as it is.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from psycopg import conninfo

_NAMES = ("sslrootcert", "sslcert", "sslkey")
_BEGIN = "-----BEGIN"


def with_files(url: str) -> str:
    """The connection string with files in the place of texts in PEM."""
    given = conninfo.conninfo_to_dict(url)
    texts = {name: str(given[name]) for name in _NAMES if name in given}
    files = {name: _file(text) for name, text in texts.items() if text.lstrip().startswith(_BEGIN)}
    return conninfo.make_conninfo(url, **files) if files else url


@cache
def _folder(process: int) -> Path:
    made = Path(tempfile.mkdtemp(prefix=f"noonmark-{process}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _file(text: str) -> str:
    # By process, because a forked worker must not use a folder that its parent removes.
    path = _folder(os.getpid()) / f"{hashlib.sha256(text.encode()).hexdigest()}.pem"
    if not path.exists():
        descriptor, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.replace(draft, path)
    return str(path)
