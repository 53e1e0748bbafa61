"""F8: 100 views whose inputs do not change: no Spark job, and less than 2 % of a core.

The inputs move on in time once a second and hold what they held. The session that the views have
refuses to be asked for, so that a job would be a failure of the run. What is counted is the
processor time of the whole process, persist's own upkeep included.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.measure import seed_of
from noonmark import persist
from noonmark.compute.plan.definition import Definition
from noonmark.compute.runner.job import perform
from noonmark.compute.trace.by_key import TraceReader
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import View
from noonmark.persist.client import Client, Options
from noonmark.rows.schema import Schema
from noonmark.tvc import Update

VIEWS, ROUNDS = 100, 30
SCHEMA = Schema.of(k="bigint", v="bigint")
SHAPES = (
    "SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k",
    "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE a.v > {at}",
    "SELECT k, max(v) AS top FROM b WHERE v <> {at} GROUP BY k",
    "SELECT DISTINCT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > {at})",
)


def main(argv: Sequence[str]) -> dict[str, Any]:
    seed_of(argv)
    with (
        tempfile.TemporaryDirectory() as folder,
        persist.open(Path(folder) / "data", options=Options(notify_host=None)) as client,
    ):
        for name in ("a", "b"):
            write = client.create_or_load(name, SCHEMA, ("k",))[0]
            rows = [Update((at % 50, at), 1, 1) for at in range(500)]
            write.compare_and_append(rows, 0, 2).result()
        flow = Dataflow()
        hydrate(client, flow, TraceReader(Path(folder) / "cache"))
        shares = [idle_round(client, flow, at) for at in range(2, 2 + ROUNDS)]
    share = sum(shares[5:]) / len(shares[5:]) * 100
    print(f"{VIEWS} views, {ROUNDS} rounds: {share:.2f} % of a core, 0 Spark jobs")
    print(f"{share:.2f}")
    return {
        "title": f"{VIEWS} views whose inputs do not change, one round a second",
        "value": share,
        "unit": "% of a core",
        "goal": "0 Spark jobs, < 2 % of a core",
        "met": share < 2,
        "measures": {"% of a core": share},
        "note": f"{ROUNDS} rounds, the first 5 left out; no session was asked for",
    }


def refused() -> Any:
    raise AssertionError("an idle view asked for Spark")


def hydrate(client: Client, flow: Dataflow, shelf: TraceReader) -> None:
    """Bring the views up in this process, as a task would."""
    for at in range(VIEWS):
        sql = SHAPES[at % len(SHAPES)].format(at=at)
        definition = Definition.of_sql(f"view_{at}", sql, {"a": SCHEMA, "b": SCHEMA})
        view = View(client, refused, definition).start()
        begun = view.begin()
        assert begun is not None
        assert begun.work is not None
        view.finish(begun, perform(shelf, view.name, begun.work))
        flow.add(view)


def idle_round(client: Client, flow: Dataflow, now: int) -> float:
    """Seconds of processor time that one more second of the inputs costs."""
    began = _spent()
    txn = client.atomic()
    for name in ("a", "b"):
        txn.append(client.create_or_load(name)[0], None, now, now + 1)
    txn.commit().result()
    done = flow.tick()
    assert [record.strategy for record in done] == ["idle"] * VIEWS, flow.failures
    return _spent() - began


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
