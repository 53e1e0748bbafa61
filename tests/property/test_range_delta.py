"""Comparisons with one row that changes: only the rows for which they switch are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noonmark.compute.incremental import lookups
from noonmark.compute.incremental import range_delta as switched
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.maintenance import changes_cost_all
from noonmark.compute.view.explain import explain_view
from noonmark.tvc import Update
from support.view.views import SCHEMAS, answer, seeded_history
from support.view.walk import Walker

TIMES = 14
VIEWS = {
    "above": "SELECT k, v FROM l WHERE v > (SELECT avg(v) FROM l)",
    "turned": "SELECT k FROM l WHERE (SELECT max(w) FROM r) >= v",
    "below": "SELECT k, s FROM l WHERE v <= (SELECT count(*) - 4 FROM r)",
    "groups": "SELECT k, sum(v) AS total FROM l GROUP BY k "
    "HAVING sum(v) > (SELECT sum(v) / 3.0 FROM l)",
    "with_more": "SELECT l.v, r.w FROM l JOIN r ON l.k = r.k WHERE v > (SELECT avg(w) FROM r)",
    "texts": "SELECT k FROM l WHERE s >= (SELECT min(s) FROM l WHERE v > 0)",
    "floats": "SELECT k FROM l WHERE v::float8 > (SELECT avg(w::float8) FROM r)",
    "most": "SELECT k, total FROM (SELECT k, sum(v) AS total FROM l GROUP BY k) t "
    "WHERE total = (SELECT max(w) FROM r)",
    "fails": "SELECT k FROM l WHERE v > (SELECT 6 / (count(*) - 3) FROM l WHERE s = 'a')",
    "then": "SELECT count(*) AS n FROM (SELECT k FROM l WHERE v > (SELECT avg(v) FROM l)) t "
    "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = t.k)",
}
#: The row is shown, or compared twice, or with what two leaves have: then all are read.
ALL_OF_IT = {
    "shown": "SELECT k, v, m FROM l, (SELECT avg(v) AS m FROM l) t WHERE v > m",
    "twice": "SELECT k FROM l, (SELECT min(w) AS a, max(w) AS b FROM r) t WHERE v > a AND v < b",
    "of_join": "SELECT l.k FROM l JOIN r ON l.k = r.k WHERE v + w < (SELECT avg(w) FROM r)",
    "unequal": "SELECT k FROM l WHERE v <> (SELECT count(*) FROM r)",
}
DEFINITIONS = {n: Definition.of_sql(n, sql, SCHEMAS) for n, sql in (VIEWS | ALL_OF_IT).items()}


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_that_switch_are_enough(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked one or two at a time, so that every step of the search is taken."""
    monkeypatch.setattr(switched, "ASKED", 1 + seed % 2)
    sizes: list[tuple[int, int]] = []
    act: Any = lookups.switched

    def counted(old: Any, group: Any, step: Any, *rest: Any) -> Any:
        found = act(old, group, step, *rest)
        if found is not None:
            everything = len(old.whole(group.leaves[step.leaf]).consolidated())
            sizes.append((len(found[1]) // max(1, len(rest[1].rows)), everything))
        return found

    monkeypatch.setattr(lookups, "switched", counted)
    before = seeded_history(seed, TIMES, size=9)
    history = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in before.items()}
    walker = Walker(tmp_path, SCHEMAS, {})
    for each in DEFINITIONS.values():
        walker.create(each)
    for upper in (4, 5, 8, 9, 10, TIMES + 1):
        walker.write(history, upper)
        for name in DEFINITIONS:
            walker.tick(name)
    wrong = [
        (name, time)
        for name, each in DEFINITIONS.items()
        for time in range(TIMES + 1)
        if walker.at(name, time) != answer(each.relation, history, time)
    ]
    walker.stop()
    assert wrong == []
    assert any(some < whole for some, whole in sizes), "everything was looked at"


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_switches_is_explained(tmp_path: Path, name: str) -> None:
    walker = Walker(tmp_path, SCHEMAS, {})
    walker.create(DEFINITIONS[name])
    text = explain_view(walker.views[name])
    walker.stop()
    assert ("ALL OF IT" in text) == (name in ALL_OF_IT) == changes_cost_all(DEFINITIONS[name], {})
    assert ("what switches" in text) == (name in VIEWS)
