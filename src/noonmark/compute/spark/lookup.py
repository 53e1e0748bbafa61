"""Accumulators by key, for tasks over large changes.

Law: for every key that comes in, all rows of the collection with that key, as of the time before
the tick. Only the parts and pages that can hold these keys are read: a task opens the collection
itself, and no row of it passes through the driver.

Where it runs: `TaskLocation.of` on the driver, `TaskLocation.rows` on executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from noonmark.compute.plan.arrangement import Arrangement
from noonmark.persist import task
from noonmark.persist.client import Client
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query, plan_read


@dataclass(frozen=True)
class LookupTarget:
    """One collection at one time, for tasks that look rows up in it.

    Attributes:
        place: where the parts are.
        collection: with all its batches.
        seqno: of the state that the collection is of.
        as_of: the time.
        key: the names of the columns that values are given for.
    """

    place: task.TaskLocation
    collection: Collection
    seqno: int
    as_of: int
    key: tuple[str, ...]

    @classmethod
    def of(cls, client: Client, keeper: Arrangement, as_of: int) -> LookupTarget:
        """The collection as it is known now."""
        return cls(
            task.TaskLocation(client.blob.url, client.config),
            client.state.collection(keeper.name),
            client.state.seqno,
            as_of,
            keeper.key,
        )

    def rows(self, keys: set[tuple[Any, ...]] | None) -> Iterator[pa.Table]:
        """Runs on executors: data columns and `_diff` of the rows with these keys (None: all)."""
        if keys is not None and not keys:
            return
        asked = None if keys is None else list(keys)
        plan = plan_read(
            self.seqno, self.collection, Query(self.as_of, keys=asked, despite_error=True)
        )
        yield from task.read(self.place, plan)
