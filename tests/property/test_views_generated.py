"""Generated queries as views over generated histories, at every time; `make prove` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.view.coverage import OPERATORS, SHARED, operators_of
from support.view.generated import run


@pytest.mark.parametrize("tasks", [0, 3], ids=["small", "large"])
def test_generated_views_are_their_definitions_at_every_time(tmp_path: Path, tasks: int) -> None:
    done = run(tmp_path, seed=9, count=12, ticks=6, tasks=tasks)
    assert done.wrong == ()
    assert done.compared > 60
    assert done.filled > 20, "agreement about nothing proves little"
    assert done.operators[SHARED], "no two views kept the same"


@pytest.mark.parametrize(
    ("sql", "has", "has_not"),
    [
        (
            "select a from t where exists (select 1 from u where u.a = t.a)",
            {"correlated EXISTS", "WHERE"},
            {"correlated NOT EXISTS", "uncorrelated EXISTS", "scalar subquery"},
        ),
        (
            "select a from t where a not in (select x from u)",
            {"uncorrelated NOT IN"},
            {"correlated NOT IN", "uncorrelated IN"},
        ),
        (
            "select t.a, (select max(u.x) from u where u.a = t.a) from t full join u using (a)",
            {"correlated scalar subquery", "FULL JOIN", "JOIN USING", "max"},
            {"LEFT JOIN", "LATERAL"},
        ),
        (
            "select sum(a) over (order by b groups between 1 preceding and current row) from t",
            {"window", "window of GROUPS", "sum"},
            {"window of ROWS", "GROUP BY"},
        ),
        (
            "select distinct on (a) a, b from t order by a, b",
            {"DISTINCT ON"},
            {"DISTINCT", "ORDER BY and LIMIT"},
        ),
        (
            "select a, count(distinct b) from t group by rollup (a) having count(*) > 1",
            {"ROLLUP", "HAVING", "DISTINCT aggregate"},
            {"CUBE", "DISTINCT"},
        ),
    ],
)
def test_what_a_query_covers(sql: str, has: set[str], has_not: set[str]) -> None:
    found = operators_of(sql)
    assert has <= found <= set(OPERATORS)
    assert not has_not & found
