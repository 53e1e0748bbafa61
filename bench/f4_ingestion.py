"""F4: ingestion (decode, reclock, envelope NONE, durable) against a plain Spark job to Parquet.

Two sources. FILES: JSON lines; the peer is ``spark.read.json`` with the same schema, written with
``write.parquet``. AUCTION: its bids; the peer is the same generator in the same tasks, its records
written by Spark. Ours also gives every record its time, sorts, checksums, keeps errors apart,
fsyncs and commits. The figure is the lower of the two ratios of rows/s.

And catching up: one job over 1,000 bindings against one over the same rows with one binding.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measure import side_by_side
from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import for_batches, for_ticks, spark_session, stop_session
from noonmark.errors import SourceStalled
from noonmark.ingest.ingestion import Feed, Ingestion, SparkEngine, raw, typed
from noonmark.oracle import MemoryOracle
from noonmark.rows.schema import Schema
from noonmark.rows.spark import spark_schema
from noonmark.source import START, Source
from noonmark.source import spark as source_spark
from noonmark.source.format.json import Json
from noonmark.source.impl.auction import Auction
from noonmark.source.impl.files import of_lines
from noonmark.tvc import partition_frontier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 3
FILES = 8
BIDS = 4
BINDINGS = 1000
GOAL, GOAL_BINDINGS = 0.8, 1.5
SCHEMA = Schema.of(
    id="bigint not null", customer="bigint", item="text", price="double precision", note="text"
)


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=5_000_000)
    chosen = parser.parse_args(list(argv))
    rows, seed = chosen.rows, chosen.seed
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), spark_session())
        try:
            files = bench.files(rows, seed)
            auction = bench.auction(rows, seed)
            slowdown = bench.bindings(rows // 5, seed)
        finally:
            stop_session()
    value = min(files[2], auction[2])
    for name, (mine, theirs, ratio) in {"FILES": files, "AUCTION": auction}.items():
        print(
            f"{name} rows/s: noonmark {rows / mine:,.0f}, Spark {rows / theirs:,.0f}: {ratio:.2f}"
        )
    print(f"{BINDINGS} bindings in one job: {slowdown:.2f}x of one binding")
    print(f"{value:.2f}")
    return {
        "title": "ingestion of FILES and AUCTION against plain Spark to Parquet",
        "value": value,
        "unit": "x",
        "goal": f">= {GOAL}, and {BINDINGS} bindings < {GOAL_BINDINGS}x of one",
        "met": value >= GOAL and slowdown < GOAL_BINDINGS,
        "measures": {
            "FILES noonmark rows/s": rows / files[0],
            "FILES Spark rows/s": rows / files[1],
            "AUCTION noonmark rows/s": rows / auction[0],
            "AUCTION Spark rows/s": rows / auction[1],
            "1,000 bindings x of one": slowdown,
        },
        "note": f"{rows:,} rows each, median of {ROUNDS} rounds, seed {seed}; "
        f"FILES {files[2]:.2f}, AUCTION {auction[2]:.2f}, bindings over {rows // 5:,} rows",
    }


@dataclass
class FixedClock:
    """A wall clock that stands where it is put, for a generator to be read up to there."""

    now: int = 0

    def now_ms(self) -> int:
        """Where it was put."""
        return self.now

    monotonic = staticmethod(SYSTEM.monotonic)
    sleep = staticmethod(SYSTEM.sleep)
    random = staticmethod(SYSTEM.random)
    fresh_id = staticmethod(SYSTEM.fresh_id)


@dataclass(frozen=True)
class Asleep:
    """An engine that never gets to read: every tick leaves a binding behind."""

    def run(self, *_: Any) -> Any:
        """See `noonmark.ingest.ingestion.Engine.run`."""
        raise SourceStalled("not now")


@dataclass
class Bench:
    """A folder, a Spark session, and turns that each start from nothing."""

    folder: Path
    session: SparkSession
    turns: int = 0

    def __post_init__(self) -> None:
        self.ticks, self.batches = for_ticks(self.session), for_batches(self.session)

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """A place for the result of one turn."""
        self.turns += 1
        place = self.folder / f"turn-{self.turns}"
        yield place
        shutil.rmtree(place)

    @contextmanager
    def ingestion(self, source: Source, feeds: tuple[Feed, ...], clock: Any) -> Iterator[Ingestion]:
        """A new location, and the ingestion of a source that it has nothing of yet."""
        config = persist.Config(merge_fan_in=1000)  # no compaction beside the measurement
        options = persist.Options(config=config)
        engine = SparkEngine(lambda: self.ticks)
        with (
            self.fresh() as place,
            persist.open(place, options=options, clock=clock) as client,
        ):
            yield Ingestion(client, MemoryOracle(clock), source, "s", engine, feeds=feeds).start()

    def files(self, rows: int, seed: int) -> tuple[float, float, float]:
        """Median seconds of ours and of Spark, and the median of Spark / ours."""
        lines = self.folder / "lines"
        write_lines(lines, rows, seed)
        source = of_lines(str(lines))

        def ours() -> None:
            feeds = (raw(source, 0, "t", Json(SCHEMA)),)
            with self.ingestion(source, feeds, SYSTEM) as ingestion:
                assert ingestion.tick().rows == rows

        def peer() -> None:
            with self.fresh() as place:
                frame = self.batches.read.schema(spark_schema(SCHEMA)).json(str(lines))
                frame.write.parquet(str(place))

        mine, theirs, ratio = side_by_side(ours, peer, ROUNDS)
        shutil.rmtree(lines)
        return mine, theirs, 1 / ratio

    def auction(self, rows: int, seed: int) -> tuple[float, float, float]:
        """Like `files`, for the bids of an auction house: one bid a step, none deleted."""
        source = Auction(start_ms=0, tick_ms=1, seed=seed, keep=rows)
        clock = FixedClock(rows)
        splits = source.plan(START, partition_frontier({0: rows + 1}))

        def ours() -> None:
            with self.ingestion(source, (typed(source, BIDS),), clock) as ingestion:
                assert ingestion.tick().rows == rows

        def peer() -> None:
            with self.fresh() as place:
                frame = source_spark.records(self.batches, source, splits, BIDS)
                frame.write.parquet(str(place))

        mine, theirs, ratio = side_by_side(ours, peer, ROUNDS)
        return mine, theirs, 1 / ratio

    def bindings(self, rows: int, seed: int) -> float:
        """How much longer one job over many bindings takes than over one, over the same rows."""
        source = Auction(start_ms=0, tick_ms=1, seed=seed, keep=rows)

        def catch_up(bindings: int) -> float:
            clock = FixedClock(0)
            with self.ingestion(source, (typed(source, BIDS),), clock) as ingestion:
                engine, ingestion.engine = ingestion.engine, Asleep()
                for at in range(1, bindings):
                    clock.now = rows * at // bindings
                    try:
                        ingestion.tick()
                    except SourceStalled:
                        continue
                ingestion.engine, clock.now = engine, rows
                began = SYSTEM.monotonic()
                assert ingestion.tick().rows == rows
                return SYSTEM.monotonic() - began

        catch_up(1)
        ratios = [catch_up(BINDINGS) / catch_up(1) for _ in range(ROUNDS)]
        return sorted(ratios)[ROUNDS // 2]


def write_lines(folder: Path, rows: int, seed: int) -> None:
    """JSON lines, in files of about the same size."""
    folder.mkdir()
    for number, documents in enumerate(json_documents(rows, seed, FILES)):
        with (folder / f"{number}.json").open("w") as file:
            file.write("\n".join(documents) + "\n")


def json_documents(rows: int, seed: int, pieces: int) -> Iterator[list[str]]:
    """Documents of `SCHEMA`, in pieces of about the same size."""
    random = np.random.default_rng(seed)
    for ids in np.array_split(np.arange(rows), pieces):
        count = len(ids)
        columns = {
            "id": pa.array(ids).cast(pa.string()),
            "customer": pa.array(random.integers(0, 100_000, count)).cast(pa.string()),
            "item": _quoted("item #", random.integers(0, 5000, count)),
            "price": pa.array(random.integers(1, 10**6, count) / 100).cast(pa.string()),
            "note": _quoted("as agreed on day ", random.integers(0, 365, count)),
        }
        parts: list[Any] = []
        for at, (name, values) in enumerate(columns.items()):
            parts += ["{" if at == 0 else ", ", f'"{name}": ', values]
        yield pc.binary_join_element_wise(*parts, "}", "").to_pylist()


def _quoted(prefix: str, numbers: Any) -> pa.Array:
    return pc.binary_join_element_wise(f'"{prefix}', pa.array(numbers).cast(pa.string()), '"', "")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
