"""A top-k over everything, of what is kept as a whole: only its first rows are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noonmark.compute.definition import Definition
from noonmark.compute.walk import first
from noonmark.tvc import Update
from support.views import SCHEMAS, answer, seeded_history
from support.views_walk import Walker

TIMES = 14
VIEWS = {
    "best": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k ORDER BY v DESC NULLS LAST, w LIMIT 2",
    "page": "SELECT DISTINCT k, v, s FROM l ORDER BY s NULLS FIRST LIMIT 2 OFFSET 1",
    "counts": "SELECT k, n FROM (SELECT k, max(v) AS n FROM l GROUP BY k) x ORDER BY n LIMIT 1",
    "sums": "SELECT k, sum(v) AS total FROM l GROUP BY k HAVING count(*) > 1 ORDER BY 2 LIMIT 1",
    "plain": "SELECT k, v FROM l WHERE v > -1 ORDER BY v, k LIMIT 2",
    "equal": "SELECT l.k FROM l JOIN r ON l.k = r.k ORDER BY 1 LIMIT 3",
}


@pytest.mark.parametrize("seed", range(6))
def test_the_first_rows_are_enough(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at one by one, so that every step of the search is taken."""
    monkeypatch.setattr(first, "FIRST_MIN", 1)
    monkeypatch.setattr(first, "GROWTH", 2)
    looked: list[bool] = []
    complete: Any = first._complete

    def counted(*given: Any) -> Any:
        looked.append(any(given[3]))
        return complete(*given)

    monkeypatch.setattr(first, "_complete", counted)
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
        if walker.at(each.name, time) != answer(each.plan, history, time)
    ]
    walker.stop()
    assert wrong == []
    assert any(looked), "no search began with less than everything"
