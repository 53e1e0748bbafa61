"""TPC-H for the figures about views.

The tables are Parquet files, written as they are generated. Plain Spark and DuckDB ask the queries
of those files; ours are loaded from them with Spark. The rows that change are drawn from a sample:
no process ever has the tables in memory, at whatever scale.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import sqlglot
from pyspark.sql import functions as f

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.measure import timed
from noonmark import persist
from noonmark.compute.jvm.session import for_batches, spark_session, stop_session
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.maintenance import changes_cost_all
from noonmark.persist.client import Client, Options
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.spark.write import stage_frame
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk
from support.view.judged import Changing
from support.view.tpch import QUERIES, SCHEMAS
from support.view.tpch_changes import KEYS, Tables, kept
from support.view.tpch_views import TpchViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QUERIES", "Again", "StoredViews", "both", "hydrate", "options", "parser", "why"]

Files = Mapping[str, Path]

#: Of the tables, how much changes at a tick, and how many rows of all of them at most.
FRACTION, ROWS_MAX = 0.001, 6_000


def options(argv: Sequence[str], scale: float, rounds: int) -> argparse.Namespace:
    return parser(scale, rounds).parse_args(list(argv))


def parser(scale: float, rounds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="the seed of the generator")
    parser.add_argument("--scale", type=float, default=scale, help="the scale of TPC-H")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds after the warm-up")
    parser.add_argument("--queries", default=",".join(QUERIES), help="such as q01,q05")
    parser.add_argument("--data", type=Path, help="a folder to keep the generated tables in")
    return parser


class StoredViews(TpchViews):
    """Views over tables that come from files."""

    def __init__(
        self, client: Client, spark: Callable[[], SparkSession], seed: int, files: Files
    ) -> None:
        self.files = files
        super().__init__(client, spark, Tables.sampled(seed, files))

    def load(self, tables: Changing) -> None:
        """Every file as one run, stored by Spark's tasks; all in one commit, at time 1."""
        del tables  # the sample: what changes later
        session, txn = for_batches(self.spark()), self.client.atomic()
        for name, path in self.files.items():
            frame = session.read.parquet(str(path))
            frame = frame.withColumns({TIME: f.lit(1).cast("long"), DIFF: f.lit(1).cast("long")})
            handle = self.client.create_or_load(name)[0]
            staged = stage_frame(frame, self.client, handle)
            txn.append(handle, staged.rest, 0, 2, stored=staged.commands(handle.collection))
        txn.commit().result()
        self.now = 1

    def change_some(self) -> int:
        """The updates of `some_changes` at the next time; how many there are."""
        made = self.some_changes(self.now + 1)
        self.append(made)
        return sum(table.num_rows for table in made.values())

    def some_changes(self, time: int) -> dict[str, pa.Table]:
        """0.1 % of the tables, at most 6,000 rows, in proportion to their sizes."""
        fraction = min(FRACTION, ROWS_MAX / sum(self.tables.sizes.values()))
        return self.tables.change(time, fraction, ROWS_MAX, few=False)


def why(name: str) -> str:
    """Why a tick of a query takes what it takes."""
    definition = Definition.of_sql(name, QUERIES[name], SCHEMAS)
    if changes_cost_all(definition, KEYS):
        return "reads all of an input at every change"
    scans = sum(isinstance(node, r.Scan) for node in walk(definition.plan))
    return f"looks keys up in {scans} relations"


def hydrate(world: StoredViews, names: Iterable[str], scale: float) -> None:
    """Make the queries views and bring them up; up to a tenth of scale 1 in tasks of walks."""
    world.create(names)
    for view in world.flow.views.values():
        usual = view.task_bytes_max
        view.task_bytes_max = 1 << 30 if scale <= 0.1 else usual
        print(f"{view.name} hydrated in {timed(view.tick):.2f} s", flush=True)
        view.task_bytes_max = usual


class Again:
    """The queries asked anew, of the tables as they were loaded."""

    def __init__(self, spark: SparkSession, files: Files) -> None:
        self.spark = spark
        self.duck = duckdb.connect()
        for name, path in files.items():
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
def both(chosen: argparse.Namespace) -> Iterator[tuple[StoredViews, Again, Path]]:
    """The tables in a location of ours and as Parquet, on one Spark, in a folder for scratch."""
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    with (
        tempfile.TemporaryDirectory() as folder,
        persist.open(Path(folder) / "data", options=Options(notify_host=None)) as client,
    ):
        files = kept(chosen.data or Path(folder), chosen.seed, chosen.scale)
        world = StoredViews(client, lambda: spark, chosen.seed, files)
        yield world, Again(for_batches(spark), files), Path(folder)
    stop_session()
