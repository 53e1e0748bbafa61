"""dbt with its stock PostgreSQL adapter: every materialization, twice, and what is around it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.neighbour.dbt_runs import all_good, running_dbt
from support.serve.host import DatabaseHost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).with_name("dbt")
SEED = (PROJECT / "seeds" / "orders.csv").read_text()


@pytest.fixture(scope="module")
def dbt_host(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatabaseHost]:
    served = DatabaseHost(str(tmp_path_factory.mktemp("dbt") / "location"), spark)
    yield served
    served.close()


def test_a_project_twice(dbt_host: DatabaseHost, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder)
    changed = SEED.replace("20.00", "21.00") + "4,eve,7.00,2026-01-04 13:00:00\n"
    invocations = [
        ["debug"],
        ["build"],
        ["!write", "seeds/orders.csv", changed],
        ["build"],
        ["source", "freshness"],
        ["docs", "generate"],
        ["build", "--full-refresh"],
    ]
    with running_dbt() as dbt:
        done = dbt.run(dbt_host, folder, invocations)
    all_good(done)
    _, first, second, fresh, _, _ = done
    assert len(first["nodes"]) == len(second["nodes"]) == 13
    assert fresh["nodes"]["orders"][0] == "pass"
    assert second["nodes"]["kept"][1] == "REFRESH MATERIALIZED VIEW"
    assert second["nodes"]["appended"][1] == "INSERT 0 1"
    catalog = json.loads((folder / "target" / "catalog.json").read_text())["nodes"]
    described = catalog["model.shop.customers"]
    assert described["metadata"]["comment"] == """What each customer "ordered"; 'quotes' too."""
    assert list(described["columns"]) == ["customer", "orders", "total"]
    with psycopg.connect(dbt_host.dsn("noonmark"), autocommit=True) as connection:
        _check_contents(connection)


def _check_contents(connection: psycopg.Connection[Any]) -> None:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(map(str, row)) for row in connection.execute(sql.encode()).fetchall()]

    totals = [("ada", "15.75"), ("bob", "21.00"), ("eve", "7.00")]
    for relation in ("shop.customers", "shop.kept"):
        found = f"select customer, round(total::numeric, 2) from {relation} order by 1"
        assert rows(found) == totals
    assert rows("select id from shop.appended order by id") == [("1",), ("2",), ("3",), ("4",)]
    assert rows("select id, round(amount::numeric, 2) from shop.placed order by 1") == [
        ("1", "10.50"),
        ("2", "21.00"),
    ]
    history = "select count(*), count(dbt_valid_to) from shop.orders_history where id = "
    assert rows(history + "2") == [("2", "1")]  # the old amount, and the new one
    assert rows(history + "1") == [("1", "0")]
    left = "select relname from pg_class where relname like '%dbt_%backup%'"
    assert rows(left) == []
    assert rows("select nspname from pg_namespace where nspname like 'pg_temp%'") == []
