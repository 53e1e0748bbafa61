"""The judge at work: the plain meaning of a small view, in one task of Spark.

The rows of all inputs and of the view go from the executors that read them to the one that judges,
as Arrow; what differs comes back. Nothing else passes through the driver.

Where it runs: `judged` on the driver, the tasks on executors.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.spark.frame import names, union
from noonmark.persist.part.run import DIFF
from noonmark.persist.spark.errors import typed_errors
from noonmark.rows.arrow import arrow_type, from_array
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.judge import Difference, verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PACKED = "side int, data binary"
_PACKED_ARROW = pa.schema([("side", pa.int32()), ("data", pa.binary())])


def judged(
    plan: r.Relation, inputs: Mapping[r.Scan, DataFrame], stored: DataFrame, limit: int
) -> list[Difference] | None:
    """The verdict over frames in the layout; `stored` has the schema of the plan."""
    scans = list(inputs)
    frames = [stored, *(inputs[scan] for scan in scans)]
    packed = [each.mapInArrow(Pack(side), _PACKED) for side, each in enumerate(frames)]
    work = Judge(plan, tuple(scans), limit)
    marker = stored.sparkSession.createDataFrame([(-1, b"")], _PACKED)
    with typed_errors():
        made = union([marker, *packed]).coalesce(1).mapInArrow(work, _PACKED).toArrow()
    (found,) = made.column("data").to_pylist()
    answer: list[Difference] | None = pickle.loads(found)
    return answer


@dataclass(frozen=True)
class Pack:
    """Runs on executors: batches of one side as bytes."""

    side: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each by itself."""
        for batch in batches:
            if batch.num_rows:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                yield _packed(self.side, sink.getvalue().to_pybytes())


def _packed(side: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"side": [side], "data": [data]}, schema=_PACKED_ARROW)


@dataclass(frozen=True)
class Judge:
    """Runs on one executor: everything in, what differs out."""

    plan: r.Relation
    scans: tuple[r.Scan, ...]
    limit: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The verdict, packed."""
        schemas = [self.plan.schema, *(scan.schema for scan in self.scans)]
        rows: list[Counter[Any]] = [Counter() for _ in schemas]
        errors: list[Counter[str]] = [Counter() for _ in schemas]
        for batch in batches:
            for side, data in zip(*(batch.column(at).to_pylist() for at in (0, 1)), strict=True):
                if side >= 0:
                    _unpack(data, schemas[side], rows[side], errors[side])
        found = verdict(
            self.plan,
            {scan.collection: rows[at] for at, scan in enumerate(self.scans, 1)},
            rows[0],
            errors[0],
            inputs_fail=any(errors[1:]),
        )
        yield _packed(0, pickle.dumps(None if found is None else found[: self.limit]))


def _unpack(data: bytes, schema: Schema, rows: Counter[Any], errors: Counter[str]) -> None:
    table = pa.ipc.open_stream(data).read_all()
    values = [
        from_array(table.column(name).combine_chunks().cast(arrow_type(each.type)), each.type)
        for name, each in zip(names(len(schema)), schema, strict=True)
    ]
    failed, diffs = table.column(ERROR).to_pylist(), table.column(DIFF).to_pylist()
    given = zip(*values, strict=True) if values else iter([()] * len(diffs))
    for row, error, diff in zip(given, failed, diffs, strict=True):
        if error is None:
            rows[tuple(map(hashable, row))] += diff
        else:
            errors[error] += diff
