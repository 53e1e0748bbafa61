"""The Compute layer: one more call beside those of Storage.

    maintain_view([ReadCapability], view or views, [WriteCapability]) -> [ReadCapability]

installs a view over collections that the caller may read, from the capabilities' common frontier
on. Compute takes its own hold of every input, durable with the view, and moves it only as the
view's own since moves: never past what the view can still be read at. The result is a capability
on the view's collection, which is an explicit collection like any other: `subscribe_at` and
`acquire_capabilities` of Storage serve it, and other views read it.

A view makes its collection, or writes one that exists already, for which a write capability is
given (`noonmark.compute.view.written`).

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.compute.plan.definition import VIEW, Definition
from noonmark.compute.spark.inputs import is_view
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import TickRecord, View
from noonmark.errors import (
    CapabilityInvalid,
    NameTaken,
    UnknownCollection,
    UsageError,
)
from noonmark.persist.log import command as c
from noonmark.persist.pending import with_pending
from noonmark.storage import ReadCapability, Storage, WriteCapability
from noonmark.storage.description import description_of
from noonmark.storage.subscription import Subscription
from noonmark.storage.transaction import RETAIN_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compute:
    """The views of one location, and the calls on them. One caller at a time."""

    def __init__(self, storage: Storage, spark: Callable[[], SparkSession]) -> None:
        self.storage = storage
        self.dataflow = Dataflow()
        self._spark = spark

    def maintain_view(
        self,
        reads: Sequence[ReadCapability],
        view: Definition | Sequence[Definition],
        writes: Sequence[WriteCapability] = (),
        *,
        retain_ms: int = RETAIN_MS,
        strict: bool = False,
    ) -> list[ReadCapability]:
        """Install a view; durable on return. Its contents come with the next ticks.

        Args:
            reads: a capability for every input; they are given to Compute, which drops them once
                it holds the inputs itself.
            view: the view, or several outputs, which begin at one time and in one commit.
            writes: for outputs that exist already, in the order of the views: the first view
                writes the first of them, under that id. They are given to Compute, too.
            retain_ms: how much history it keeps.
            strict: whether a tick is never to compute the whole anew.

        Returns:
            a capability for each output, in their order.
        """
        definitions = [view] if isinstance(view, Definition) else list(view)
        given = {each.id: each for each in writes}
        if len(writes) > len(definitions) or len(given) < len(writes):
            raise UsageError("there are more write capabilities than outputs")
        if read := {name for each in definitions for name in each.inputs} & given.keys():
            raise UsageError(f'"{min(read)}" cannot be an input and an output of one view')
        for at, write in enumerate(writes):
            definitions[at] = replace(definitions[at], name=write.id)
        as_of = max(self._common_time(reads, each) for each in definitions)
        as_of = max([as_of, *map(self._begin_of, writes)])
        client, taken = self.storage.client, self.storage.client.state.names
        for each in definitions:
            if each.name in taken and each.name not in given:
                raise NameTaken(f'collection "{each.name}" exists already', collection=each.name)
        commands: c.Transaction = ()
        for each in definitions:
            made = View(with_pending(client, commands), self._spark, each)
            commands = (*commands, *made.creation(as_of, given.get(each.name)))
        client.submit(commands).result()
        for each in definitions:
            made = View(client, self._spark, each, retain_ms=retain_ms, strict=strict)
            self.dataflow.add(made)
        self.storage.drop(*reads)
        return [self._read_capability(each.name) for each in definitions]

    def _begin_of(self, write: WriteCapability) -> int:
        """When a collection that exists already can be written, by who may."""
        self.storage.renew(write)  # refuses one that is not valid as stated
        time = write.frontier.only()
        if time is None:
            raise UsageError(f'"{write.id}" is closed: there is nothing to write')
        return time

    def _read_capability(self, id: str) -> ReadCapability:
        return self.storage.acquire_read(id)

    # -- the calls of Storage, for the ids that Compute introduced -----------------------------

    def acquire_capabilities(self, id: str) -> ReadCapability:
        """The right to read a view; who maintains it is the only one that may write."""
        self._own(id)
        return self._read_capability(id)

    def subscribe_at(
        self,
        capability: ReadCapability,
        *,
        snapshot: bool = True,
        filter: Any = None,
        projection: tuple[str, ...] | None = None,
    ) -> Subscription:
        """The contents of a view at the capability's time, and its changes from then on.

        Args:
            capability: where to read from.
            snapshot: False to begin with the updates after its frontier.
            filter: a pyarrow compute expression over the columns: rows for which it is not true
                are not sent.
            projection: the columns to send.
        """
        self._own(capability.id)
        return self.storage.subscribe_at(
            capability, snapshot=snapshot, filter=filter, projection=projection
        )

    def update_and_downgrade(self, capability: WriteCapability, *_: object) -> WriteCapability:
        """Refused: what a view holds follows from its inputs.

        Raises:
            CapabilityInvalid: always, for a view; other ids are unknown here.
        """
        self._own(capability.id)
        raise CapabilityInvalid(
            f'view "{capability.id}" is written by its maintenance alone',
            hint="Write to its inputs.",
        )

    def _own(self, id: str) -> None:
        if id not in self.dataflow.views:
            raise UnknownCollection(
                f'"{id}" is no view that is maintained here',
                hint="Ask Storage for collections that are no views.",
                collection=id,
            )

    def _common_time(self, reads: Sequence[ReadCapability], definition: Definition) -> int:
        missing = set(definition.inputs) - {each.id for each in reads}
        if missing:
            raise CapabilityInvalid(
                f'view "{definition.name}" reads "{min(missing)}" without a capability',
                hint="Pass a ReadCapability for every collection of the query.",
            )
        times = []
        for each in reads:
            self.storage.renew(each)  # refuses one that is not valid as stated
            time = each.frontier.only()
            if time is None:
                raise UsageError(f'"{each.id}" is closed: there is nothing to read')
            times.append(time)
        return max(times, default=0)

    def resume(self) -> list[View]:
        """Take up every view of the location again, as it was defined."""
        client = self.storage.client
        names = [name for name in client.state.names if is_view(client, name)]
        waiting = {name: description_of(client.state.collection(name)) for name in names}
        resumed: list[View] = []
        for name in sorted(waiting, key=lambda each: client.state.names[each]):
            assert waiting[name].kind == VIEW
            inputs = waiting[name].details["inputs"]
            schemas = {each: client.state.collection(each).schema for each in inputs}
            definition = Definition.of_sql(name, waiting[name].details["sql"], schemas)
            resumed.append(View(client, self._spark, definition))
            self.dataflow.add(resumed[-1])
        return resumed

    def tick(self) -> list[TickRecord]:
        """One round over all views."""
        return self.dataflow.tick()

    def drop_view(self, name: str) -> None:
        """End a view and remove its collections."""
        self.dataflow.remove(name).drop()
