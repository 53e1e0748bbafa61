"""Staging: a table is read into a collection that nobody sees, beside an ingestion that goes on.

All rows of the table's snapshot get one time. Nothing is committed here: `stage` gives the commands
that would. Once they are committed, and the collection is as far as those of the ingestion, it
becomes one more output of that, and is brought forward with them.

Law (difference): `difference((old, new), ...)` are the updates at one time that make the contents
of one collection those of another: every row as often as it is there too little, or too often.

Where it runs: driver; the reading where the engine runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from noonmark.errors import SourceBroken
from noonmark.ingest.ends import met
from noonmark.ingest.engine import Engine
from noonmark.ingest.feed import Feed
from noonmark.ingest.task import Destination, IngestTask, Row, unpacked
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Collection
from noonmark.persist.part.part import Part
from noonmark.persist.part.run import DIFF, TIME, consolidate
from noonmark.persist.read.plan import Query
from noonmark.persist.read.updates import stored_schema
from noonmark.persist.write import append_command, inline_append
from noonmark.remap.lookup import Staircase, TimeTable
from noonmark.source.contract import NO_OUTPUT, Source, Split
from noonmark.storage.transaction import Transaction, own_capability

#: Contents of up to this size are compared in the driver's memory; larger ones by Spark.
_IN_PLACE_BYTES_MAX = 64 << 20

_PARTS = msgspec.msgpack.Decoder(Part)
_NEVER = Staircase(np.array([], np.int64), np.array([], np.int64))


@dataclass(frozen=True)
class Staging:
    """A table to be read.

    Attributes:
        feed: what becomes of its records, and in which collection.
        collection: that one.
        errors: the collection of what cannot be read of it.
        time: the time of its rows.
    """

    feed: Feed
    collection: Collection
    errors: Collection
    time: int


def stage(
    client: Client, engine: Engine, source: Source, splits: Sequence[Split], what: Staging
) -> list[c.Append]:
    """Read the splits, which are one table's, and store it; what would commit it.

    Raises:
        SourceBroken: the table is not what it was when it was described.
    """
    steps = {
        split.partition: Staircase(np.array([split.upper]), np.array([what.time]))
        for split in splits
    }
    work = IngestTask(
        task.TaskLocation(client.blob.url, client.config, client.parts.epoch),
        TimeTable(steps, _NEVER),
        (Destination(what.feed, what.collection, what.time),),
        what.errors,
        what.time,
        source.offset_unit,
    )
    rows = engine.run(source, splits, work)
    for end in met(rows, [what.feed.output]):
        raise SourceBroken(end.reason)
    return [each for row in rows for each in _appends(row, what)]


def _appends(row: Row, what: Staging) -> list[c.Append]:
    to = what.errors if row["feed"] == NO_OUTPUT else what.collection
    made = []
    if row["parts"]:
        made.append(append_command(to.id, tuple(map(_PARTS.decode, row["parts"]))))
    if row["rest"]:
        made.append(inline_append(to.id, unpacked(row["rest"]), len(to.schemas) - 1))
    return made


def write_difference(
    client: Client,
    txn: Transaction,
    names: tuple[str, str],
    as_of: tuple[int, int],
    *,
    time: int,
    spark: Callable[[], Any],
) -> int:
    """Add to a transaction what makes the contents of one collection those of another.

    Args:
        client: the writer.
        txn: the transaction.
        names: the collection to be changed, and the one whose contents it gets. The columns of the
            second are those of the first.
        as_of: the times of the contents, one for each.
        time: that of the changes.
        spark: asked when there is much to compare.

    Returns:
        how many updates there are.
    """
    own = own_capability(client.state, names[0])
    size = sum(b.bytes for name in names for b in client.state.collection(name).batches)
    if size <= _IN_PLACE_BYTES_MAX or client.blob.url.startswith("memory:"):
        table = difference(client, names, as_of, time)
        txn.update(own, table)
        return len(table)
    from noonmark.persist.spark.difference import (
        stage_difference,  # door: only who needs Spark does
    )

    staged = stage_difference(spark(), client, names, as_of, time)
    for parts in staged.runs:
        txn.add(append_command(client.state.names[names[0]], parts))
    if staged.rest is not None:
        txn.update(own, staged.rest)
    return staged.rows


def difference(
    client: Client, names: tuple[str, str], as_of: tuple[int, int], time: int
) -> pa.Table:
    """See the module; in memory."""
    found = client.state.collection(names[0])
    tables = []
    for name, at, sign in zip(names, as_of, (-1, 1), strict=True):
        for table in _contents(client, client.state.names[name], at):
            diffs = pa.array(sign * table.column(DIFF).to_numpy())
            times = pa.array(np.full(table.num_rows, time))
            data = table.select(list(found.schema.names))
            tables.append(data.append_column(TIME, times).append_column(DIFF, diffs))
    if not tables:
        return stored_schema(found, len(found.schemas) - 1).empty_table()
    return consolidate(pa.concat_tables(tables))


def _contents(client: Client, collection: int, as_of: int) -> list[pa.Table]:
    plan = client.reader.plan(collection, Query(as_of, despite_error=True))
    return list(client.iterate(client.reader.contents(plan)))
