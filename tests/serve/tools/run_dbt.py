"""Runs dbt in its own environment: argument lists as JSON on standard input, one invocation each.

An invocation may be `["!write", path, text]`, which changes a file of the project. What comes out
is JSON: for each invocation the nodes and what became of them.
"""

import json
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

runner, told = dbtRunner(), []
for arguments in json.load(sys.stdin):
    if arguments[0] == "!write":
        Path(arguments[1]).write_text(arguments[2])
        continue
    done = runner.invoke([*arguments, "--quiet"])
    found = {}
    if arguments[0] not in ("debug", "docs"):
        results = getattr(done.result, "results", None) or []
        found = {r.node.name: [str(r.status), (r.message or "")[:2000]] for r in results}
    told.append({"success": done.success, "why": str(done.exception or ""), "nodes": found})
print("\n" + json.dumps(told))
