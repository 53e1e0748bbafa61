"""The same transfers through plain Structured Streaming: what it publishes, and of what time it is.

Transfers come as files, one after the other; only inserts, because a stream cannot take back. The
views are written as its users have to: a query for each aggregate, whose latest answer is a table.
A join of two aggregates, or an aggregate over it, is refused as one query (Spark 4.3), so that
`balance` and `total` are asked of the latest tables whenever one of them has changed. The self-join
is one query, with a watermark. An answer is right when it is the view of the first n transfers, for
any n.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.view.bank import ACCOUNTS, VIEWS, meaning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Multiset = Counter[tuple[Any, ...]]
#: A micro-batch takes at most so many transfers, so that there is something to look at.
FILES_PER_BATCH = 5
#: How a view is put to Structured Streaming.
HOW = {
    "credits": "one query, complete mode",
    "debits": "one query, complete mode",
    "balance": "refused as one query; a join of the two tables",
    "total": "refused as one query; over the join of the two tables",
    "itself": "one query with a watermark, append mode",
}
_COLUMNS = "id int, from_account int, to_account int, amount int, at timestamp"
_START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@dataclass
class Streaming:
    """One run: so many transfers; what was published, and how much of it was wrong."""

    folder: Path
    seed: int
    transfers: int
    outputs: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)

    def run(self, spark: SparkSession) -> None:
        """Write all transfers while the queries run, and judge everything that they publish."""
        rows = self._rows()
        self._right = {name: set() for name in VIEWS}
        so_far: Multiset = Counter()
        for row in ((), *rows):
            so_far.update([row] if row else [])
            for name, answer in meaning(so_far).items():
                self._right[name].add(frozenset(answer.items()))
        self._latest: dict[str, Multiset] = {name: Counter() for name in VIEWS}
        self._lock = threading.Lock()
        (self.folder / "in").mkdir()
        self._write(rows[:ACCOUNTS])
        queries = self._queries(spark)
        for row in rows[ACCOUNTS:]:
            self._write([row])
            threading.Event().wait(0.02)
        for query in queries:
            query.processAllAvailable()
            query.stop()

    def _rows(self) -> list[tuple[int, int, int, int]]:
        chance = random.Random(self.seed)
        made = [(each, each, (each + 1) % ACCOUNTS, 1) for each in range(ACCOUNTS)]
        for number in range(ACCOUNTS, self.transfers):
            one, other = chance.sample(range(ACCOUNTS), 2)
            made.append((number, one, other, chance.randrange(1, 100)))
        return made

    def _write(self, rows: list[tuple[int, int, int, int]]) -> None:
        columns = [pa.array(each, pa.int32()) for each in zip(*rows, strict=True)]
        times = [_START + dt.timedelta(seconds=row[0]) for row in rows]
        names = ["id", "from_account", "to_account", "amount", "at"]
        table = pa.table([*columns, pa.array(times, pa.timestamp("us", tz="UTC"))], names=names)
        hidden = self.folder / f"{rows[0][0]}.tmp"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / "in" / f"{rows[0][0]:06}.parquet")

    def _queries(self, spark: SparkSession) -> list[StreamingQuery]:
        reader = spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", FILES_PER_BATCH)
        stream = reader.parquet(str(self.folder / "in"))
        credits = stream.groupBy("to_account").sum("amount")
        debits = stream.groupBy("from_account").sum("amount")
        left = stream.withWatermark("at", "1 second").alias("t")
        right = stream.withWatermark("at", "1 second").alias("s")
        same = left.join(right, on=_same(), how="left_outer").selectExpr("t.id", "s.id as same")
        return [
            self._start("credits", credits, "complete"),
            self._start("debits", debits, "complete"),
            self._start("itself", same, "append"),
        ]

    def _start(self, name: str, frame: DataFrame, mode: str) -> StreamingQuery:
        def publish(batch: DataFrame, _: int) -> None:
            rows: Multiset = Counter(tuple(row) for row in batch.collect())
            with self._lock:
                self._latest[name] = rows if mode == "complete" else self._latest[name] + rows
                self._judge(name)
                if name != "itself":
                    self._derive()

        writer = frame.writeStream.outputMode(mode).foreachBatch(publish)
        return writer.option("checkpointLocation", str(self.folder / name)).start()

    def _derive(self) -> None:
        """What a reader of the two tables sees now."""
        got, gave = (dict(self._latest[name].keys()) for name in ("credits", "debits"))
        balance = {each: got[each] - gave[each] for each in got.keys() & gave.keys()}
        self._latest["balance"] = Counter(balance.items())
        total = sum(balance.values()) if balance else None
        self._latest["total"] = Counter({(total,): 1})
        self._judge("balance")
        self._judge("total")

    def _judge(self, name: str) -> None:
        self.outputs[name] += 1
        rows = self._latest[name]
        if frozenset(rows.items()) not in self._right[name]:
            self.wrong[name] += 1
            self.example.setdefault(name, f"{sorted(rows, key=repr)!r:.120}")


def _same() -> Any:
    from pyspark.sql import functions as f

    return (f.col("t.id") == f.col("s.id")) & (f.col("t.at") == f.col("s.at"))
