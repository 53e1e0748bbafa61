"""dbt, run in the environment that is locked for it, over projects in folders."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from support.neighbour.tool_venv import LOCKS, tool_python
from support.serve.host import DatabaseHost

#: What dbt calls a node that went well.
GOOD = ("success", "pass")
#: What a line begins with that is an answer (`run_dbt.py`).
_ANSWER = "answer: "


class Dbt:
    """A process of dbt, which takes a second to come up, for one project after the other."""

    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self._process = process
        self._log = log

    def run(
        self, host: DatabaseHost, folder: Path, invocations: list[list[str]]
    ) -> list[dict[str, Any]]:
        """What dbt says of each invocation."""
        environment = {"NOONMARK_PORT": str(host.port), "DBT_PROFILES_DIR": str(folder)}
        request = {
            "folder": str(folder), "environment": environment, "invocations": invocations,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        said = ""
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                found: list[dict[str, Any]] = json.loads(line.removeprefix(_ANSWER))
                return found
            said += line
        self._log.seek(0)
        raise AssertionError(f"dbt has ended: {said[-6_000:]}\n{self._log.read()[-6_000:]}")


@contextmanager
def running_dbt(**environment: str) -> Iterator[Dbt]:
    """dbt until the end of the block; `environment` is added to ours."""
    command = [str(tool_python("dbt")), str(LOCKS / "run_dbt.py")]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        try:
            yield Dbt(process, log)
        finally:
            process.kill()
            process.communicate()


def all_good(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, of which every node went well."""
    for each in done:
        bad = [(n, s) for n, s in each["nodes"].items() if s[0] not in GOOD]
        assert not bad, "\n".join(f"{name}: {' '.join(said)}" for name, said in bad)
        assert each["success"], each["why"]
    return done
