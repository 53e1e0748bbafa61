"""Executors that are processes of their own, and die: no half batch, no duplicate, no loss.

Each function that runs on executors fails once, at its first attempt, which a marker file tells:
the first attempt has stored some of its parts by then.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.persist.client import Options
from noonmark.persist.config import Config
from noonmark.persist.part.store import PART_PREFIX
from noonmark.persist.spark import changes_frame, compact_on_spark, snapshot_frame, write_frame
from noonmark.rows.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3000
CONFIG = Config(part_rows_max=200, inline_bytes_max=0, merge_fan_in=1000)
SCHEMA = Schema.of(id="bigint", name="text")
Batches = Iterator[pa.RecordBatch]


def once(marker: str) -> bool:
    """Whether this is the first call, in any process."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def kill_executor() -> None:
    """Runs on executors: end the JVM above this Python worker and the daemon that forked it."""
    above = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(above[1]), signal.SIGKILL)


def fail() -> None:
    raise RuntimeError("the first attempt fails")


def failing(folder: Path, how: Callable[[], None], stored: bool) -> Callable[[Batches], Batches]:
    """A mapInArrow function that fails once, late in its rows.

    With `stored`, only when a part of what it has passed on is in the location.
    """

    def work(batches: Batches) -> Batches:
        passed = 0
        for batch in batches:
            if passed >= 1400 and once(str(folder / "marker")):
                while stored and not part_files(folder / "v"):
                    Event().wait(0.05)
                how()
            yield batch
            passed += batch.num_rows

    return work


def part_files(folder: Path) -> int:
    return sum(1 for _ in (folder / PART_PREFIX).rglob("*.parquet"))


@pytest.mark.parametrize(("how", "ranges"), [(fail, 0), (kill_executor, 0), (kill_executor, 2)])
def test_a_write_survives_its_executors(
    how: Callable[[], None], ranges: int, spark_cluster: SparkSession, tmp_path: Path
) -> None:
    session = spark_cluster.newSession()
    # Rows reach the task that stores them in small batches, before the task that fails has ended.
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    frame = session.range(0, ROWS, 1, 2).selectExpr(
        "id", "concat('n', id, repeat('x', 500)) as name", "0L as _time", "1L as _diff"
    )
    broken = frame.mapInArrow(failing(tmp_path, how, stored=not ranges), frame.schema)
    options = Options(config=CONFIG, notify_host=None)
    with persist.open(tmp_path / "v", options=options) as client:
        write, read = client.create_or_load("v", SCHEMA, ("id",))
        before = client.state.seqno
        write_frame(broken, client, write, 0, 1, ranges=ranges).result()
        assert (tmp_path / "marker").exists()
        assert client.state.seqno == before + 1
        batches = client.state.collection("v").batches
        parts = [part for batch in batches for part in batch.parts]
        assert sum(part.rows for part in parts) == ROWS
        # What the lost task had stored, if it came so far, is an orphan beside them.
        assert part_files(tmp_path / "v") >= len(parts)
        expected = Counter((n, f"n{n}" + "x" * 500) for n in range(ROWS))
        assert read.snapshot(0).result().counts() == expected
        ids = snapshot_frame(spark_cluster, client, "v", 0).select("id").toArrow()["id"]
        assert sorted(ids.to_pylist()) == list(range(ROWS))


def test_executors_read_merge_and_compact(spark_cluster: SparkSession, tmp_path: Path) -> None:
    options = Options(config=CONFIG, notify_host=None)
    with persist.open(tmp_path / "v", options=options) as client:
        write, read = client.create_or_load("v", SCHEMA, ("id",))
        write.write([persist.Update((n, f"n{n}"), 0, 1) for n in range(ROWS)])
        write.write([persist.Update((n, f"n{n}"), 1, -1) for n in range(0, ROWS, 2)])
        write.seal(2).result()
        expected = Counter((n, f"n{n}") for n in range(1, ROWS, 2))

        def contents() -> Counter[tuple[int, str]]:
            table = snapshot_frame(spark_cluster, client, "v", 1).toArrow()
            return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))

        assert contents() == expected
        assert changes_frame(spark_cluster, client, "v", 1, 2).count() == ROWS // 2
        write.allow_compaction(1).result()
        compact_on_spark(spark_cluster, client, "v").result()
        assert len(client.state.collection("v").batches) == 1
        assert read.snapshot(1).result().counts() == expected
        assert contents() == expected
        source = spark_cluster.read.format("noonmark").option("location", client.blob.url)
        assert source.option("as_of", 1).load("v").where("id = 7").count() == 1
