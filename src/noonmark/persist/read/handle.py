"""The read half of a collection: `snapshot` and `listen`."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from noonmark.errors import NotYetComplete
from noonmark.persist.codec import Codec
from noonmark.persist.log.refusals import format_frontier
from noonmark.persist.log.state import Frontier, State
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.snapshot import Listen, Snapshot
from noonmark.persist.write import as_frontier

if TYPE_CHECKING:
    from noonmark.persist.client import Client


class ReadHandle:
    """The right to read one collection."""

    def __init__(self, client: Client, collection: int, codec: Codec) -> None:
        self._client = client
        self.collection = collection
        self.codec = codec

    @property
    def since(self) -> Frontier:
        """The first readable times, as this process knows."""
        return self._client.state.collection(self.collection).since

    @property
    def upper(self) -> Frontier:
        """The first incomplete times, as this process knows."""
        return self._client.state.collection(self.collection).upper

    def snapshot(self, as_of: int, *, wait: bool = True, **query: Any) -> Future[Snapshot]:
        """The contents at `as_of`; waits until that time is complete.

        Args:
            as_of: the time.
            wait: False to get `NotYetComplete` instead of waiting.
            **query: `columns`, `where` and `keys`, as in `plan.Query`.
        """
        return self._client.runtime.submit(self._snapshot(Query(as_of, **query), wait))

    async def _snapshot(self, query: Query, wait: bool) -> Snapshot:
        client = self._client

        def complete(state: State) -> bool:
            return not state.collection(self.collection).upper.less_equal(query.as_of)

        if not wait and not complete(client.state):
            found = client.state.collection(self.collection)
            raise NotYetComplete(
                f'"{found.name}" is not complete at {query.as_of}',
                detail=f"Its upper is {format_frontier(found.upper)}.",
                hint="Read at an earlier time, or wait.",
                as_of=query.as_of,
                upper=found.upper,
            )
        await client.journal.wait_for(complete)
        return Snapshot(client, client.reader.plan(self.collection, query), self.codec)

    def listen(self, as_of: int, *, hold: bool | None = None) -> Listen:
        """Updates at times after `as_of`.

        Args:
            as_of: a readable time.
            hold: whether to take a hold, so that since cannot overtake the listener; by default
                yes, except for an independent reader, which cannot.
        """
        client = self._client
        return client.runtime.submit(self.open_listen(as_of, hold)).result()

    async def open_listen(
        self, as_of: int, hold: bool | None = None, *, over_errors: bool = False
    ) -> Listen:
        """Like `listen`, on the loop; `over_errors` as `noonmark.persist.read.snapshot` says."""
        client = self._client
        listen = Listen(client, self.collection, self.codec, as_of, over_errors=over_errors)
        if hold is None:
            hold = client.options.mode != "independent"
        if hold:
            listen.hold = await client.acquire(self.collection, as_frontier(as_of))
        else:
            client.reader.plan(self.collection, Query(as_of, despite_error=True))
        return listen


def plan_at(client: Client, name: str, query: Query) -> Plan:
    """Plan a read of a time that is complete by now."""
    found = client.state.collection(name)
    if query.as_of >= 0 and found.upper.less_equal(query.as_of):
        raise NotYetComplete(
            f'"{name}" is not complete at {query.as_of}',
            detail=f"Its upper is {format_frontier(found.upper)}.",
            hint="Read at an earlier time, or wait.",
            as_of=query.as_of,
            upper=found.upper,
        )
    return client.reader.plan(found.id, query)
