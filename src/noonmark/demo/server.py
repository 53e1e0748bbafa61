"""The demo's server: `noonmark serve` as a process of its own, so that it can be killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from typing import IO

from noonmark.demo.interrupts import INTERRUPTS
from noonmark.errors import ConfigError

_READY = re.compile(r"ready pg=(\S+) http=(\S+)\n")
_STOP_S = 20
_USUAL = ("127.0.0.1:6875", "127.0.0.1:6876")
_FREE = ("127.0.0.1:0", "127.0.0.1:0")


@dataclass
class Server:
    """A server on a storage location, for the length of a block; `kill` and `start` it at will."""

    data: str
    pg: str | None = None
    http: str | None = None
    _process: subprocess.Popen[str] | None = None
    _log: IO[str] = field(default_factory=partial(tempfile.TemporaryFile, "w+"), repr=False)

    def __enter__(self) -> Server:
        """Start it: on the usual ports, or on free ones where something else has those."""
        asked = (self.pg, self.http)
        try:
            if asked != (None, None) or not self._start(*_USUAL):
                chosen = (self.pg or _FREE[0], self.http or _FREE[1])
                if not self._start(*chosen):
                    raise self._failure()
        except BaseException:  # also Ctrl-C: a server that is on its way up is ended, too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it; what it holds is given back."""
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    @property
    def url(self) -> str:
        """Where psycopg finds it."""
        host, _, port = str(self.pg).rpartition(":")
        return f"postgresql://noonmark@{host}:{port}/noonmark"

    def kill(self) -> None:
        """End it with -9: it gets no chance to save anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Start it again, where it was."""
        if not self._start(str(self.pg), str(self.http)):
            raise self._failure()

    def _start(self, pg: str, http: str) -> bool:
        command = [sys.executable, "-m", "noonmark", "serve", "--data", self.data]
        # In a session of its own: Ctrl-C is the demo's to handle.
        with INTERRUPTS.held():
            process = self._process = subprocess.Popen(
                [*command, "--pg", pg, "--http", http],
                stdout=subprocess.PIPE, stderr=self._log, text=True, start_new_session=True,
            )  # fmt: skip
        assert process.stdout is not None
        found = _READY.fullmatch(process.stdout.readline())
        if found is None:
            process.kill()
            process.wait()
            return False
        self.pg, self.http = found[1], found[2]
        return True

    def _failure(self) -> ConfigError:
        self._log.seek(0)
        told = self._log.read().strip().splitlines()
        return ConfigError("the server did not start", detail="\n".join(told[-5:]) or None)
