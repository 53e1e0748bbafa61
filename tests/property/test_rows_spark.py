"""The law of noonmark.rows.spark: rows go into Spark, through Parquet and out again unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from noonmark.rows import types as t
from noonmark.rows.arrow import conform, from_table, to_table
from noonmark.rows.schema import Column, Schema
from noonmark.rows.spark import (
    SESSION_OPTIONS,
    from_dataframe,
    spark_schema,
    to_dataframe,
)
from support.store.rows import NESTED, SCALARS, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One record holds every scalar, so a few arrays show what remains; each column costs Spark time.
_ARRAYS = (t.Timestamp(), t.TimestampTz(), t.Date(), t.Text(), t.Interval(), t.Numeric())
TYPES = (
    *SCALARS,
    *map(t.Array, _ARRAYS),
    *(kind for kind in NESTED if "record" in str(kind)),
)
SCHEMA = Schema(
    (
        Column("row", t.Integer(), nullable=False),
        *(Column(f"c{at}", sql_type) for at, sql_type in enumerate(TYPES)),
    )
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    derived = spark.newSession()
    for name, value in SESSION_OPTIONS.items():
        derived.conf.set(name, value)
    return derived


def _rows(count: int) -> list[tuple[Any, ...]]:
    """Rows that hold many values of every type: one Spark job is worth many examples."""
    drawn: list[tuple[Any, ...]] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*(st.none() | values(sql_type) for sql_type in TYPES)))
    def draw(row: tuple[Any, ...]) -> None:
        drawn.append((len(drawn), *row))

    draw()
    return drawn


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return to_table(_rows(150), SCHEMA)


def _check(found: pa.Table, expected: pa.Table) -> None:
    found = found.sort_by("row")
    assert found.schema.equals(expected.schema)
    for name in SCHEMA.names:
        left, right = (repr(from_table(x.select([name]), _only(name))) for x in (found, expected))
        assert left == right, name


def _only(name: str) -> Schema:
    return Schema((SCHEMA[name],))


def test_rows_go_in_and_out(session: SparkSession, table: pa.Table) -> None:
    frame = to_dataframe(session, table, SCHEMA)
    assert frame.schema == spark_schema(SCHEMA)
    _check(from_dataframe(frame, SCHEMA), table)


def test_rows_go_through_python_workers(session: SparkSession, table: pa.Table) -> None:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = to_dataframe(session, table, SCHEMA).mapInArrow(same, spark_schema(SCHEMA))
    _check(from_dataframe(frame, SCHEMA), table)


def test_spark_reads_our_parquet(session: SparkSession, table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "part.parquet", compression="zstd")
    frame = session.read.parquet(str(tmp_path / "part.parquet"))
    assert frame.schema == spark_schema(SCHEMA)
    _check(from_dataframe(frame, SCHEMA), table)


def test_we_read_the_parquet_of_spark(
    session: SparkSession, table: pa.Table, tmp_path: Path
) -> None:

    to_dataframe(session, table, SCHEMA).repartition(2).write.parquet(str(tmp_path / "parts"))
    read = pq.read_table(tmp_path / "parts", partitioning=None)
    _check(conform(read, SCHEMA), table)


def test_an_empty_table_keeps_its_schema(session: SparkSession, table: pa.Table) -> None:
    empty = table.slice(0, 0)
    frame = to_dataframe(session, empty, SCHEMA)
    assert from_dataframe(frame, SCHEMA).equals(empty)
