"""dbt, run in the environment that is locked for it, over a project in a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from support.neighbour.tool_venv import LOCKS, run_tool, tool_python
from support.serve.host import DatabaseHost

#: What dbt calls a node that went well.
GOOD = ("success", "pass")


def dbt(
    host: DatabaseHost, folder: Path, invocations: list[list[str]], **env: str
) -> list[dict[str, Any]]:
    """What dbt says of each invocation; `env` is added to the environment."""
    own = {"NOONMARK_PORT": str(host.port), "DBT_PROFILES_DIR": str(folder)}
    python, text = tool_python("dbt"), json.dumps(invocations)
    said = run_tool(
        python, LOCKS / "run_dbt.py", cwd=folder, env={**os.environ, **own, **env}, input=text
    )
    found: list[dict[str, Any]] = json.loads(said.splitlines()[-1])
    return found


def all_good(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, of which every node went well."""
    for each in done:
        bad = [(n, s) for n, s in each["nodes"].items() if s[0] not in GOOD]
        assert not bad, "\n".join(f"{name}: {' '.join(said)}" for name, said in bad)
        assert each["success"], each["why"]
    return done
