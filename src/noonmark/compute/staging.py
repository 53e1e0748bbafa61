"""Several frames stored by one Spark job, for one commit.

Law: ``stage_all(client, {name: frame})`` stores what `stage_frame` of each would store, and commits
nothing.

Small frames become one union whose tasks each store for their own collection: jobs cost more than
tasks. Large ones are stored one after another, each cut by key ranges.

Where it runs: driver; `WriteTask` runs on executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as f

from noonmark.compute.frame import union
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.part import Part
from noonmark.persist.spark import Staged, stage_frame, typed_errors
from noonmark.persist.spark_slices import bare_collection
from noonmark.persist.spark_write import WriteTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT = "partition int, parts array<binary>, rest binary"
_PARTS = msgspec.msgpack.Decoder(Part)


def stage_all(client: Client, frames: Mapping[str, DataFrame], *, small: bool) -> dict[str, Staged]:
    """What the executors stored for each collection."""
    if not small:
        return {
            name: stage_frame(frame, client, client.create_or_load(name)[0])
            for name, frame in frames.items()
        }
    place = task.Place(client.blob.url, client.config, client.parts.epoch)
    written = []
    for number, (name, frame) in enumerate(frames.items()):
        collection = bare_collection(client.state.collection(name))
        made = frame.mapInArrow(WriteTask(place, collection, one_run=False), _RESULT)
        written.append(made.select(f.lit(number).alias("target"), "*"))
    with typed_errors():
        rows: list[dict[str, Any]] = union(written).toArrow().to_pylist() if written else []
    return {
        name: _gathered([row for row in rows if row["target"] == number])
        for number, name in enumerate(frames)
    }


def _gathered(rows: list[dict[str, Any]]) -> Staged:
    runs = tuple(tuple(map(_PARTS.decode, row["parts"])) for row in rows if row["parts"])
    rest = [pa.ipc.open_stream(row["rest"]).read_all() for row in rows if row["rest"]]
    return Staged(runs, pa.concat_tables(rest) if rest else None)
