"""`noonmark serve` as a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

READY = re.compile(r"ready pg=127\.0\.0\.1:(\d+) http=127\.0\.0\.1:(\d+)\n")
PORTS = ("--pg", "127.0.0.1:0", "--http", "127.0.0.1:0")


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "noonmark", "serve", *options]


class Server:
    """A server process; its ports."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        found = READY.fullmatch(line)
        assert found is not None, f"no ready line, but {line!r}"
        self.pg, self.http = int(found[1]), int(found[2])

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1", port=self.pg, user="me", dbname="noonmark", autocommit=True
        )


@contextmanager
def serving(folder: Path | str, *options: str) -> Iterator[Server]:
    """A server over a location, killed at the end; what it logs goes to a file, read by nobody."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command("--data", str(folder), *PORTS, *options),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield Server(process)
        finally:
            process.kill()
            process.communicate()
