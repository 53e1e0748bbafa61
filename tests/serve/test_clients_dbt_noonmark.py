"""dbt with the adapter of dbt-noonmark: what is kept, what is replaced, and what stands on it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.neighbour.dbt_runs import Dbt, all_good, running_dbt
from support.serve.host import DatabaseHost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).parents[2] / "dbt-noonmark"
TOTALS = (PACKAGE / "sample" / "models" / "totals.sql").read_text()
LARGE = (PACKAGE / "sample" / "models" / "large.sql").read_text()
TICKS = (PACKAGE / "sample" / "models" / "ticks.sql").read_text()
MODELS = ("archive", "large", "paid", "report", "ticked", "ticks", "totals")


@pytest.fixture(scope="module")
def dbt_host(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatabaseHost]:
    served = DatabaseHost(str(tmp_path_factory.mktemp("dbt") / "location"), spark)
    yield served
    served.close()


@pytest.fixture(scope="module")
def dbt() -> Iterator[Dbt]:
    with running_dbt(PYTHONPATH=str(PACKAGE / "src")) as running:
        yield running


class Project:
    """The sample project in a schema of its own, and a client beside it."""

    def __init__(self, dbt: Dbt, host: DatabaseHost, folder: Path, schema: str) -> None:
        self._dbt = dbt
        self.host, self.folder, self.schema = host, folder, schema
        shutil.copytree(PACKAGE / "sample", folder)
        profile = folder / "profiles.yml"
        profile.write_text(profile.read_text().replace("schema: market", f"schema: {schema}"))
        self.client = psycopg.connect(host.dsn("noonmark"), autocommit=True)

    def dbt(self, *invocations: list[str]) -> list[dict[str, Any]]:
        return self._dbt.run(self.host, self.folder, list(invocations))

    def good(self, *invocations: list[str]) -> list[dict[str, Any]]:
        return all_good(self.dbt(*invocations))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.client.execute(sql.replace("@", f"{self.schema}.").encode()).fetchall()

    def do(self, sql: str) -> None:
        self.client.execute(sql.replace("@", f"{self.schema}.").encode())

    def ids(self) -> dict[str, str]:
        """The number of every object of the project, tests' views among them."""
        found = self.rows(
            "select o.name, o.id from mz_objects o join mz_schemas s on s.id = o.schema_id "
            f"where s.name in ('{self.schema}', '{self.schema}_dbt_test__audit')"
        )
        return dict(found)


@pytest.fixture
def project(
    dbt: Dbt, dbt_host: DatabaseHost, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Project]:
    schema = request.node.name.removeprefix("test_")[:20]
    made = Project(dbt, dbt_host, tmp_path / "project", schema)
    yield made
    made.client.close()


@pytest.mark.spark
def test_runs_again_keep_everything(project: Project) -> None:
    _, _, first = project.good(["debug"], ["seed"], ["run"])
    assert set(first["nodes"]) == set(MODELS)
    assert first["nodes"]["ticks"][1] == "CREATE SOURCE"
    before = project.ids()
    again, _, _, _ = project.good(["run"], ["test"], ["build"], ["docs", "generate"])
    kept = [name for name, said in again["nodes"].items() if said[1] == "KEPT"]
    assert sorted(kept) == sorted(set(MODELS) - {"archive"})
    after = project.ids()
    remade = {name for name, id in before.items() if after.get(name) != id}
    assert remade == {"archive"}, "a table is what it is with dbt-postgres"
    assert project.rows("select * from @totals order by 1") == [("ada", 15), ("bob", 20)]
    project.host.until(lambda: project.rows("select * from @ticked") == [(20, 19)])
    assert project.rows("show indexes on @large")[0][2] == ["total", "customer"]
    shown = project.rows("show create materialized view @totals")[0][1]
    assert "WITH (RETAIN HISTORY FOR '3600000ms', MAINTENANCE = STRICT)" in shown
    assert project.rows("select obj_description('@totals'::regclass)") == [
        ("What each customer paid.",)
    ]
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())["nodes"]
    assert list(catalog["model.market.ticks"]["columns"]) == ["counter"]
    whole = project.ids()
    project.good(["build", "--full-refresh"])
    refreshed = project.ids()
    assert set(refreshed) == set(whole)
    assert not {name for name in MODELS if refreshed[name] == whole[name]}
    assert project.rows("select * from @report") == [(2, 35)]


@pytest.mark.spark
def test_a_model_changes_under_others(project: Project) -> None:
    project.good(["build"])
    project.do("create role reader")
    project.do("create materialized view @mine as select sum(total) as all_of_it from @totals")
    project.do("create index on @mine (all_of_it)")
    project.do("comment on column @mine.all_of_it is 'by hand'")
    project.do("grant select on @mine to reader")
    before = project.ids()
    project.good(
        ["!write", "models/totals.sql", TOTALS.replace("sum(amount)", "sum(amount) * 10")],
        ["run", "--select", "totals"],
    )
    after = project.ids()
    assert set(after) == set(before)
    assert {name for name in MODELS if after[name] != before[name]} == {"totals", "large", "report"}
    assert project.rows("select * from @report") == [(2, 350)]
    assert project.rows("select * from @mine") == [(350,)]
    assert project.rows("select col_description('@mine'::regclass, 1)") == [("by hand",)]
    assert project.rows("select has_table_privilege('reader', '@mine', 'select')") == [(True,)]
    assert project.rows("show indexes on @mine")[0][2] == ["all_of_it"]

    # Others see one moment: what stands on it and cannot stay is named, and nothing happens.
    renamed = TOTALS.replace("as total", "as paid")
    refused = project.dbt(["!write", "models/totals.sql", renamed], ["run", "--select", "totals"])
    _, said = refused[0]["nodes"]["totals"]
    assert '"mine" reads' in said or '"large" reads' in said
    assert 'column "total" does not exist' in said
    assert project.ids() == after

    # Nor does anything happen where a text means something else now.
    project.do("create table public.totals (total int)")
    project.do(f"set search_path = {project.schema}")
    project.do("create view @other as select total from totals")
    other = TOTALS.replace("sum(amount)", "max(amount)")
    refused = project.dbt(["!write", "models/totals.sql", other], ["run", "--select", "totals"])
    assert '"other" reads' in refused[0]["nodes"]["totals"][1]
    assert "would read other relations" in refused[0]["nodes"]["totals"][1]
    project.do("drop view @other")
    assert project.ids() == after

    # What the same run makes anew need not fit in between.
    project.do("drop materialized view @mine")
    fits = LARGE.replace("total from", "paid as total from").replace("total > 10", "paid > 10")
    project.good(
        ["!write", "models/totals.sql", renamed], ["!write", "models/large.sql", fits], ["run"]
    )
    assert project.rows("select * from @report") == [(2, 35)]


@pytest.mark.spark
def test_what_changes_in_place(project: Project) -> None:
    project.good(["seed"], ["run", "--select", "paid", "totals", "large"])
    before = project.ids()
    formatted = TOTALS.replace("select customer,", "-- who\nselect  customer,  /* what */")
    more = formatted.replace("'1h'", "'2h'").replace("]}],", "]}, {'columns': ['total']}],")
    project.do("create role watcher")
    granted = more.replace("maintenance=", "grants={'select': ['watcher']},\n    maintenance=")
    run = ["run", "--select", "totals"]
    for done in project.good(["!write", "models/totals.sql", granted], run, run):
        assert done["nodes"]["totals"][1] == "KEPT"
    assert project.rows("select has_table_privilege('watcher', '@totals', 'select')") == [(True,)]
    after = project.ids()
    assert {name: after[name] for name in before} == before
    shown = project.rows("show create materialized view @totals")[0][1]
    assert "RETAIN HISTORY FOR '7200000ms'" in shown
    assert sorted(row[2] for row in project.rows("show indexes on @totals")) == [
        ["customer"],
        ["total"],
    ]
    bad = TOTALS.replace("]}],", "], 'unique': true}],")
    (refused,) = project.dbt(["!write", "models/totals.sql", bad], ["run", "--select", "totals"])
    assert "Noonmark has no unique indexes" in refused["nodes"]["totals"][1]


@pytest.mark.spark
def test_sources_and_sinks(project: Project) -> None:
    # Nobody listens there: a sink is made all the same, and waits.
    project.do("create connection public.k to kafka (broker '127.0.0.1:9')")
    told = ["--vars", "connection: public.k"]
    project.good(["seed"], ["run", *told])
    before = project.ids()
    (again,) = project.good(["run", *told])
    assert again["nodes"]["totals_out"][1] == "KEPT"

    unread = TICKS.replace("COUNTER", "SUNSHINE")
    refused, changed = project.dbt(
        ["!write", "models/ticks.sql", unread],
        ["run", "--select", "ticks"],
        ["!write", "models/ticks.sql", TICKS.replace("20", "30")],
        ["run", "--select", "ticks"],
    )
    assert "SUNSHINE is not supported" in refused["nodes"]["ticks"][1]
    assert changed["nodes"]["ticks"] == ["success", "CREATE SOURCE"]
    project.host.until(lambda: project.rows("select * from @ticked") == [(30, 29)])
    after = project.ids()
    gone = ("ticks", "ticks_errors", "ticks_remap", "ticked", "archive")
    assert all((after[name] == before[name]) == (name not in gone) for name in before)

    changed_totals = TOTALS.replace("sum(amount)", "max(amount)")
    in_the_way, whole = project.dbt(
        ["!write", "models/totals.sql", changed_totals],
        ["run", "--select", "totals", *told],
        ["run", "--full-refresh", "--select", "totals+", *told],
    )
    assert "totals_out" in in_the_way["nodes"]["totals"][1]
    assert whole["nodes"]["totals_out"] == ["success", "CREATE SINK"]
    assert project.rows("select * from @large") == [("bob", 20)]


@pytest.mark.spark
def test_tests_are_maintained(project: Project) -> None:
    project.good(["build"])
    before = project.ids()
    failing = f"select * from {project.schema}_dbt_test__audit.unique_paid_id"
    assert project.rows(failing) == []
    project.do("insert into @orders values (1, 'eve', 200)")
    assert project.rows(failing) == [(1, 2)], "no dbt ran in between"
    (done,) = project.dbt(["test"])
    assert done["nodes"]["unique_paid_id"][0] == "fail"
    assert done["nodes"]["nobody_pays_much"][0] == "warn"
    assert done["nodes"]["unique_totals_customer"][0] == "pass"
    after = project.ids()
    assert {name for name in before if after[name] != before[name]} == {"not_null_archive_id"}
    project.do("delete from @orders where customer = 'eve'")
    project.good(["test"])


@pytest.fixture(scope="module")
def text() -> ModuleType:
    path = PACKAGE / "src" / "dbt" / "adapters" / "noonmark" / "text.py"
    spec = importlib.util.spec_from_file_location("dbt_noonmark_text", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("select 1", "  select\n1 ;\n", True),
        ("select 1 -- one", "/* a /* b */ c */ select 1", True),
        ("select 'a  b'", "select 'a b'", False),
        ("select '--'", "select ''", False),
        ('select "a /* b */"', 'select "a "', False),
        ("select $x$ a  -- b $x$", "select $x$ a $x$", False),
        ("select E'it\\'s  x'", "select E'it\\'s x'", False),
        ("select 'it''s' /* unended", "select 'it''s'", True),
    ],
)
def test_texts_are_compared_by_their_tokens(
    text: ModuleType, one: str, other: str, same: bool
) -> None:
    assert (text.normal(one) == text.normal(other)) is same


@pytest.mark.parametrize(
    "head",
    ["create source s", 'CREATE SOURCE IF NOT EXISTS "d"."s"."a ""b"', "/* x */ create sink a . b"],
)
def test_a_body_is_what_follows_the_name(text: ModuleType, head: str) -> None:
    assert text.body(f"{head}\nFROM x  (a)") == "FROM x (a)"
    assert text.body(f"{head} (a int) FROM x") == "(a int) FROM x"
