"""The Compute layer: one more call beside those of Storage.

    maintain_view([ReadCapability], view) -> [ReadCapability]

installs a view over collections that the caller may read, from the capabilities' common frontier
on. Compute takes its own hold of every input, durable with the view, and moves it only as the
view's own since moves: never past what the view can still be read at. The result is a capability
on the view's collection, which is an explicit collection like any other: `subscribe_at` and
`acquire_capabilities` of Storage serve it, and other views read it.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noonmark.compute.dataflow import Dataflow
from noonmark.compute.definition import VIEW, Definition
from noonmark.compute.reading import is_view
from noonmark.compute.view import TickRecord, View
from noonmark.errors import CapabilityInvalid, Unsupported, UsageError
from noonmark.storage import ReadCapability, Storage, WriteCapability
from noonmark.storage.description import description_of

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
        definition: Definition,
        writes: Sequence[WriteCapability] = (),
    ) -> list[ReadCapability]:
        """Install a view; durable on return. Its contents come with the next ticks.

        Args:
            reads: a capability for every input; they are given to Compute, which drops them once
                it holds the inputs itself.
            definition: the view.
            writes: not supported: a view makes its own collection.
        """
        if writes:
            raise Unsupported(
                "a view cannot write into a collection that was made for it",
                hint="Read the collection that has the view's name.",
            )
        as_of = self._common_time(reads, definition)
        view = View(self.storage.client, self._spark, definition, as_of=as_of)
        self.dataflow.add(view)
        self.storage.drop(*reads)
        read, write = self.storage.acquire_capabilities(view.name)
        self.storage.drop(write)
        return [read]

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
