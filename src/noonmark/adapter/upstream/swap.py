"""What was read beside becomes what is shown: the part of it that all sources have in common.

In one transaction, at one time t: a relation gets the difference between its contents and those of
a collection that nobody sees, as updates at t, and its error ends at t (or becomes that of the
other one). In the errors of the source, what was said of the relation goes, and what was said of
the other collection is said of it.

Where it runs: a thread; comparing much, on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.adapter.catalog import Item
from noonmark.adapter.schedule.ended import remedy_of
from noonmark.ingest.stage import write_difference
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import error_at
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.plan import Query
from noonmark.persist.read.updates import shape, stored_schema
from noonmark.storage.transaction import Transaction, own_capability

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.ingest.ingestion import Target


@dataclass(frozen=True)
class Read:
    """A collection as of a time."""

    name: str
    as_of: int


@dataclass(frozen=True)
class Swap:
    """See the module: of a source, in a transaction, at a time."""

    database: Database
    source: Item
    txn: Transaction
    time: int

    def contents(self, shown: Read, beside: Read, *, is_whole: bool) -> None:
        """Give a relation the contents of a collection, and its error, if that has one.

        Args:
            shown: the relation.
            beside: the collection.
            is_whole: whether what ends it ends the source.
        """
        client = self.database.client
        target, other = (client.state.collection(each.name) for each in (shown, beside))
        failure = error_at(other.errors, beside.as_of)
        if failure is not None:  # it has ended again
            remedy = remedy_of(self.database.catalog, self.source)(shown.name, is_whole)
            failure = msgspec.structs.replace(failure, hint=remedy, origin=shown.name)
        if error_at(target.errors, self.time) != failure:
            self.txn.add(c.SetError(target.id, self.time, failure))
        names, as_of = (shown.name, beside.name), (shown.as_of, beside.as_of)
        spark = self.database.started_spark
        write_difference(client, self.txn, names, as_of, time=self.time, spark=spark)

    def errors(
        self,
        target: Target,
        as_of: int,
        names: Mapping[str, str],
        beside: Sequence[Read],
        *,
        is_whole: bool,
    ) -> None:
        """Move the errors of collections that were read beside.

        Args:
            target: the errors of the source.
            as_of: the time of them.
            names: what was read beside, and the relations that show it.
            beside: further errors of that, which are not in `target`.
            is_whole: whether all relations are swapped: what ended the source is over.
        """
        stored = _contents(self.database, Read(target.name, as_of))
        output = stored.column("output")
        mask = pc.is_in(output, pa.array([*names, *names.values()], pa.string()))
        if is_whole:
            mask = pc.or_(mask, pc.is_null(output))
        gone = stored.filter(mask)
        made = [_at(gone, self.time, sign=-1)]
        moved = [gone.filter(pc.is_in(gone.column("output"), pa.array(list(names), pa.string())))]
        moved += [_contents(self.database, each) for each in beside]
        for table in moved:
            shown = [names.get(name, name) for name in table.column("output").to_pylist()]
            place = table.column_names.index("output")
            renamed = table.set_column(place, "output", pa.array(shown, pa.string()))
            made.append(_at(renamed, self.time, sign=1))
        updates = pa.concat_tables(made)
        if updates.num_rows:
            own = own_capability(self.database.client.state, target.name)
            self.txn.update(own, updates)


def _contents(database: Database, read: Read) -> pa.Table:
    client = database.client
    plan = client.reader.plan(client.state.names[read.name], Query(read.as_of))
    tables = list(client.iterate(client.reader.contents(plan)))
    if tables:
        return pa.concat_tables(tables)
    newest = len(plan.collection.schemas) - 1
    return shape(stored_schema(plan.collection, newest).empty_table(), plan)


def _at(table: pa.Table, time: int, *, sign: int) -> pa.Table:
    """Contents as updates at a time."""
    diffs = pa.array(sign * table.column(DIFF).to_numpy())
    data = table.drop_columns([DIFF])
    times = pa.array(np.full(table.num_rows, time, np.int64))
    return data.append_column(TIME, times).append_column(DIFF, diffs)
