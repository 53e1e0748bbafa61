"""A small location with views of every kind that keeps something, and how it goes on.

Run as a script (``python tests/support/view/stored_views.py NAME``) it keeps the location that the
code writes now, under ``tests/location/NAME``. A kept location is never written again: every later
version takes its views up, whatever it needs for them and calls it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from noonmark import persist
from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.owned import is_arrangement
from noonmark.persist.client import Options
from noonmark.persist.log import command as c
from noonmark.storage import NO_LEASE_MS
from noonmark.tvc import Update
from support.view.views import SCHEMAS, seeded_history
from support.view.walk import Walker

KEPT = Path(__file__).parents[2] / "location"
#: So far the history is written, and known to the views, in a location that is kept.
STORED, TIMES = 6, 12
_BEFORE = seeded_history(7, TIMES)
HISTORY = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in _BEFORE.items()}

VIEWS = {
    "sums": "SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k",
    # Of the same need as the first, which it is behind.
    "large": "SELECT k, total FROM (SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k) t "
    "WHERE n > 1",
    "a/b": "SELECT s, count(*) AS n FROM l GROUP BY s",
    "everything": "SELECT count(*) AS n, avg(v) AS mean FROM l JOIN r ON l.k = r.k",
    "bounds": "SELECT l.k, n FROM l JOIN (SELECT w, count(*) AS n FROM r GROUP BY w) t "
    "ON l.v < t.w",
    "best": "SELECT DISTINCT v FROM l ORDER BY v DESC LIMIT 2",
    "soon": "SELECT k, v, s FROM l WHERE mz_now() <= v + 9",
    "fails": "SELECT k, sum(6 / v) AS ratio FROM l GROUP BY k",
    "linear": "SELECT k, v + 1 AS v1 FROM l WHERE s = 'a, returns=False' OR s IS NULL",
}
BEHIND = "large"


def definition(name: str) -> Definition:
    """One of the views."""
    return Definition.of_sql(name, VIEWS[name], SCHEMAS)


def write_location(folder: Path) -> None:
    """Write the location, views and all."""
    with mock.patch("socket.gethostname", return_value="example"):
        walker = Walker(folder, SCHEMAS, {})
        for name in VIEWS:
            walker.create(definition(name))
        for upper in (3, STORED):
            walker.write(HISTORY, upper)
            due = [name for name in VIEWS if name != BEHIND or upper < STORED]
            assert walker.tick_all(due) == {}
        walker.stop()
    (folder / "data" / "writer.lock").unlink()


def age(location: Path) -> list[str]:
    """Call the arrangements of a location, and the holds on them, as an earlier version did."""
    client = persist.open(location, options=Options(notify_host=None))
    state = client.state
    old = {name: f"arrangement_{at:016x}" for at, name in enumerate(state.names)}
    aged = [name for name in state.names if is_arrangement(state, name)]
    commands: list[c.AnyCommand] = []
    for name in aged:
        ref = state.names[name]
        commands.append(c.Rename(ref, old[name]))
        for hold in (each for each in state.holds.values() if each.collection == ref):
            called = hold.id.removesuffix(name) + old[name]
            place = ref, hold.frontier, NO_LEASE_MS, state.seqno, hold.owner
            commands += [c.Acquire(called, *place), c.Release(hold.id)]
    client.submit(tuple(commands)).result()
    client.stop()
    return [old[name] for name in aged]


if __name__ == "__main__":
    write_location(KEPT / sys.argv[1])
