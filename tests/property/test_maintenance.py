"""Whether a change may cost all of a view's state is decided on its plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark.adapter.statement.ddl.view import check_maintained
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.maintenance import changes_cost_all, decisions
from noonmark.compute.plan.operators import Way
from noonmark.compute.view.explain import explain_view
from noonmark.compute.view.view import View
from noonmark.errors import Unsupported
from noonmark.rows.schema import Schema
from support.view.views import SCHEMAS
from support.view.walk import Walker

#: What EXPLAIN says of what STRICT refuses, as names of tables, columns and as literals.
HOSTILE = ("RECOMPUTED AS A WHOLE", "x: not supported", "nothing: ALL OF IT")

COSTS_ALL = {
    "SELECT l.k, r.w FROM l JOIN r ON l.v < r.w": Way.PATHS,
    "SELECT string_agg(s, ',') AS all_of FROM l": Way.WHOLE,
    "SELECT 6 / v AS x, string_agg(s, ',') AS all_of FROM l GROUP BY 1": Way.BY_KEY,
}
COSTS_CHANGES = (
    "SELECT l.k, w FROM l JOIN r ON l.k = r.k",
    "SELECT k, count(*) AS n FROM l GROUP BY k",
    "SELECT k, string_agg(s, ',') AS texts FROM l GROUP BY k",
    "SELECT v::float8 AS x, string_agg(s, ',') AS texts FROM l GROUP BY 1",
    "SELECT max(v) AS high FROM l",
    "SELECT v FROM l WHERE v > (SELECT avg(v) FROM l)",
)


def definition(sql: str) -> Definition:
    return Definition.of_sql("v", sql, SCHEMAS)


@pytest.mark.parametrize(("sql", "way"), COSTS_ALL.items())
def test_what_costs_all_is_refused_by_strict(tmp_path: Path, sql: str, way: Way) -> None:
    made = definition(sql)
    assert changes_cost_all(made, {})
    assert way in {each.way for each in decisions(made.plan, {}) if each.costs_all}
    walker = Walker(tmp_path, SCHEMAS, {})
    view = View(walker.client, walker.no_spark, made).start()
    check_maintained(view, strict=False)
    with pytest.raises(Unsupported, match="by its changes alone") as refused:
        check_maintained(view, strict=True)
    walker.stop()
    assert "ALL OF" in str(refused.value.detail) or "AS A WHOLE" in str(refused.value.detail)


@pytest.mark.parametrize("sql", COSTS_CHANGES)
def test_what_costs_its_changes_is_taken(sql: str) -> None:
    assert not changes_cost_all(definition(sql), {})


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_literals_decide_nothing(tmp_path: Path, name: str) -> None:
    schemas = {name: Schema.of(**{"k": "bigint", name: "integer"}), "r": SCHEMAS["r"]}
    quoted, literal = f'"{name}"', f"'{name}'"
    sql = f"SELECT t.{quoted}, r.w, {literal} AS x FROM {quoted} AS t JOIN r ON t.k = r.k"
    sql += f" WHERE t.{quoted} > 0 AND {literal} || r.w::text <> {literal}"
    made = Definition.of_sql(f"view {name}", sql, schemas)
    assert not changes_cost_all(made, {})
    walker = Walker(tmp_path, schemas, {})
    view = View(walker.client, walker.no_spark, made).start()
    check_maintained(view, strict=True)
    assert name in explain_view(view)
    walker.stop()
