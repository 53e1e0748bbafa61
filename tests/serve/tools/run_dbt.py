"""Runs dbt in its own environment, one request after the other until standard input ends.

A request is a line of JSON: the `folder` of a project, what of the `environment` is its own, and
`invocations`, an argument list each. An invocation may be `["!write", path, text]`, which changes a
file of the project. The answer is a line of JSON: for each invocation the nodes and what became of
them. dbt itself may write to standard output, so what is an answer begins with `ANSWER`.
"""

import json
import os
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

ANSWER = "answer: "

for line in sys.stdin:
    request = json.loads(line)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    runner, told = dbtRunner(), []
    for arguments in request["invocations"]:
        if arguments[0] == "!write":
            Path(arguments[1]).write_text(arguments[2])
            continue
        done = runner.invoke([*arguments, "--quiet"])
        found = {}
        if arguments[0] not in ("debug", "docs"):
            results = getattr(done.result, "results", None) or []
            found = {r.node.name: [str(r.status), (r.message or "")[:2000]] for r in results}
        told.append({"success": done.success, "why": str(done.exception or ""), "nodes": found})
    print("\n" + ANSWER + json.dumps(told), flush=True)
