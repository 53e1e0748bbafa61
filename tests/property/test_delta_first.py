"""Top-k, minima and maxima of what is kept as a whole: only the first rows are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from noonmark.compute.incremental import first
from noonmark.compute.plan.definition import Definition, inlined
from noonmark.compute.view.explain import explain_view
from noonmark.tvc import Update
from support.house.counts import counted
from support.view.views import SCHEMAS, History, answer, histories, seeded_history
from support.view.walk import Walker

TIMES = 14
VIEWS = {
    "best": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k ORDER BY v DESC NULLS LAST, w LIMIT 2",
    "page": "SELECT DISTINCT k, v, s FROM l ORDER BY s NULLS FIRST LIMIT 2 OFFSET 1",
    "counts": "SELECT k, n FROM (SELECT k, max(v) AS n FROM l GROUP BY k) x ORDER BY n LIMIT 1",
    "sums": "SELECT k, sum(v) AS total FROM l GROUP BY k HAVING count(*) > 1 ORDER BY 2 LIMIT 1",
    "plain": "SELECT k, v FROM l WHERE v > -1 ORDER BY v, k LIMIT 2",
    "equal": "SELECT l.k FROM l JOIN r ON l.k = r.k ORDER BY 1 LIMIT 3",
    "each": "SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC, s",
    "second": "SELECT * FROM (SELECT DISTINCT k FROM r) x, LATERAL "
    "(SELECT v FROM l WHERE l.k = x.k ORDER BY v LIMIT 1 OFFSET 1) y",
    "ends": "SELECT k, min(v) AS a, max(v) AS b, max(s) FILTER (WHERE v > 0) AS c "
    "FROM l GROUP BY k",
    "all_ends": "SELECT min(v) AS a, max(s) AS b FROM l WHERE k > 1",
    "of_join": "SELECT max(v + w) AS a FROM l JOIN r ON l.k = r.k",
    "mixed": "SELECT k, max(v) AS a, count(*) AS n, min(s) AS b, avg(v) AS c FROM l GROUP BY k",
    "all_mixed": "SELECT sum(v) AS n, max(v) AS a FROM l",
    "of_mixed": "SELECT a, sum(n) AS m FROM (SELECT k, max(v) AS a, count(*) AS n FROM l "
    "GROUP BY k) x GROUP BY a",
    "joined": "SELECT r.w, x.a, x.n FROM r JOIN (SELECT k, max(v) AS a, count(s) AS n FROM l "
    "GROUP BY k) x ON r.k = x.k",
    "mixed_join": "SELECT sum(w) AS n, min(v + 0.5) AS a FROM l JOIN r ON l.k = r.k",
    "ends_join": "SELECT l.k, max(w) AS a, min(s) AS b, max(v) AS c FROM l JOIN r ON l.k = r.k "
    "GROUP BY l.k",
    "values": "SELECT k, count(DISTINCT v) AS a, sum(DISTINCT v) AS b, count(*) AS c FROM l "
    "GROUP BY k",
    "some_values": "SELECT k, count(DISTINCT s) FILTER (WHERE v > 0) AS a, max(v) AS b FROM l "
    "GROUP BY k",
    "all_values": "SELECT count(DISTINCT k) AS a, avg(DISTINCT v) AS b FROM l",
    "rows": "SELECT DISTINCT w, s FROM l JOIN r ON l.k = r.k",
    "places": "SELECT k, v, n, m FROM (SELECT k, v, row_number() OVER w AS n, rank() OVER w AS m "
    "FROM l WINDOW w AS (PARTITION BY k ORDER BY v DESC, s)) x WHERE n <= 2 AND v > -2",
    "place": "SELECT k, v FROM (SELECT k, v, row_number() OVER (ORDER BY v) AS n FROM l) x "
    "WHERE 3 > n",
    "floats": "SELECT k, min(v::float8) AS a, max(v::real) AS b FROM l GROUP BY k",
    "zeros": "SELECT k, max(-(v::float8)) AS a FROM l GROUP BY k",
    "by_float": "SELECT DISTINCT ON (k) k, CASE WHEN w = 1 THEN 'NaN' ELSE w::float8 END AS x "
    "FROM r ORDER BY k, 2 DESC",
}


@pytest.mark.parametrize("seed", range(counted(3, 40)))
def test_the_first_rows_are_enough(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at one by one, so that every step of the search is taken."""
    for name, value in {"FIRST_MIN": 1, "EACH_MIN": 1, "GROWTH": 2, "ROWS_MIN": 0}.items():
        monkeypatch.setattr(first, name, value)
    looked: set[tuple[bool, bool]] = set()
    complete: Any = first._Search._complete

    def counted(self: Any, taken: Any) -> Any:
        looked.add((bool(self.asked.key), any(cut.any() for _, _, cut in taken)))
        return complete(self, taken)

    monkeypatch.setattr(first._Search, "_complete", counted)
    before = seeded_history(seed, TIMES, size=7)
    history = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in before.items()}
    walker = Walker(tmp_path, SCHEMAS, {})
    definitions = [Definition.of_sql(name, sql, SCHEMAS) for name, sql in VIEWS.items()]
    for each in definitions:
        walker.create(each)
    for upper in (4, 5, 8, 9, 10, TIMES + 1):
        walker.write(history, upper)
        for each in definitions:
            walker.tick(each.name)
    wrong = [
        (each.name, time)
        for each in definitions
        for time in range(TIMES + 1)
        if _told(walker.at(each.name, time)) != _told(answer(each.relation, history, time))
    ]
    walker.stop()
    assert wrong == []
    assert looked == {(a, b) for a in (False, True) for b in (False, True)}, "with and without keys"


def _told(found: Any) -> Any:
    """Rows by how they are written: NaN is not equal to itself."""
    return found if found == "error" else {repr(row): count for row, count in found.items()}


APART = {
    "page", "second", "of_join", "mixed", "all_mixed", "of_mixed", "joined", "mixed_join",
    "ends_join", "values", "some_values", "all_values", "rows", "places", "place",
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
@given(history=histories(4))
def test_parts_mean_the_same(name: str, history: History) -> None:
    definition = Definition.of_sql(name, VIEWS[name], SCHEMAS)
    whole = inlined(definition.relation, {})
    assert (definition.plan != whole) == (name in APART)
    assert definition.plan.schema == whole.schema
    for time in range(4):
        found, expected = (answer(plan, history, time) for plan in (definition.plan, whole))
        assert _told(found) == _told(expected)


def test_sums_and_ends_are_explained_apart(tmp_path: Path) -> None:
    walker = Walker(tmp_path, SCHEMAS, {})
    walker.create(Definition.of_sql("mixed", VIEWS["mixed"], SCHEMAS))
    text = explain_view(walker.views["mixed"])
    walker.stop()
    assert "accumulators by group" in text
    assert "its first rows of the keys that changed" in text
