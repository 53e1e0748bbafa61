"""TPC-H for the figures about views.

The tables as they change, the views over them, and the same queries asked anew of plain Spark and
of DuckDB over the same rows as Parquet.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import sqlglot

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.measure import timed
from noonmark import persist
from noonmark.compute.session import for_batches, spark_session, stop_session
from noonmark.persist.client import Options
from support.tpch import QUERIES
from support.tpch_changes import Tables
from support.tpch_views import TpchViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QUERIES", "Again", "TpchViews", "both", "hydrate", "options"]

#: Of the tables, how much changes at a tick, and how many rows of one table at most.
FRACTION, ROWS_MAX = 0.001, 3_300


def options(argv: Sequence[str], scale: float, rounds: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="the seed of the generator")
    parser.add_argument("--scale", type=float, default=scale, help="the scale of TPC-H")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds after the warm-up")
    parser.add_argument("--queries", default=",".join(QUERIES), help="such as q01,q05")
    parser.add_argument("--data", type=Path, help="a folder to keep the generated tables in")
    return parser.parse_args(list(argv))


def hydrate(world: TpchViews, names: Iterable[str], scale: float) -> None:
    """Make the queries views and bring them up; up to a tenth of scale 1 in tasks of walks."""
    world.create(names)
    for view in world.flow.views.values():
        usual = view.walk_bytes_max
        view.walk_bytes_max = 1 << 30 if scale <= 0.1 else usual
        print(f"{view.name} hydrated in {timed(view.tick):.2f} s", flush=True)
        view.walk_bytes_max = usual


class Again:
    """The queries asked anew, of the tables as they were loaded."""

    def __init__(self, world: TpchViews, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.duck = duckdb.connect()
        for name, table in world.tables.now.items():
            path = folder / f"{name}.parquet"
            pq.write_table(table, path, compression="zstd")
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
            self.duck.execute(f"create view {name} as from '{path}'")

    def on_spark(self, name: str) -> int:
        """How many rows plain Spark finds."""
        text = sqlglot.transpile(QUERIES[name], read="postgres", write="spark")[0]
        return int(self.spark.sql(text).toArrow().num_rows)

    def on_duckdb(self, name: str) -> int:
        """How many rows DuckDB finds."""
        return len(self.duck.execute(QUERIES[name]).fetchall())


@contextmanager
def both(chosen: argparse.Namespace) -> Iterator[tuple[TpchViews, Again, Path]]:
    """The tables in a location of ours and as Parquet, on one Spark, in a folder for scratch."""
    tables = Tables(chosen.seed, chosen.scale, chosen.data)
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    with (
        tempfile.TemporaryDirectory() as folder,
        persist.open(Path(folder) / "data", options=Options(notify_host=None)) as client,
    ):
        world = TpchViews(client, lambda: spark, tables)
        yield world, Again(world, for_batches(spark), Path(folder)), Path(folder)
    stop_session()
