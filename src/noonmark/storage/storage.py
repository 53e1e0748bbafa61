"""The Storage layer for threads: every method blocks until what it did is durable.

`core.AsyncStorage` has the rules; here they are called on the client's loop.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from noonmark.persist.client import Client
from noonmark.persist.log.state import Frontier, Hold
from noonmark.persist.write import Updates
from noonmark.storage.capability import Capability, ReadCapability, WriteCapability
from noonmark.storage.core import AsyncStorage
from noonmark.storage.description import CollectionDescription
from noonmark.storage.subscription import Subscription

K = TypeVar("K", ReadCapability, WriteCapability)
T = TypeVar("T")


class Storage:
    """See `core`. Any thread but the loop's may call."""

    def __init__(self, client: Client, *, lease_ms: int | None = None) -> None:
        self.client = client
        self._core = AsyncStorage(client, lease_ms=lease_ms)

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        return self.client.runtime.submit(call).result()

    # -- the four calls ---------------------------------------------------------------------

    def create(
        self, id: str, description: CollectionDescription, frontier: int | Frontier = 0
    ) -> tuple[ReadCapability, WriteCapability]:
        """See `AsyncStorage.create`."""
        return self._wait(self._core.create(id, description, frontier))

    def subscribe_at(
        self,
        capability: ReadCapability,
        *,
        snapshot: bool = True,
        filter: Any = None,
        projection: tuple[str, ...] | None = None,
    ) -> Subscription:
        """See `AsyncStorage.subscribe_at`."""
        opened = self._core.subscribe_at(
            capability, snapshot=snapshot, filter=filter, projection=projection
        )
        return Subscription(self.client.runtime, self._wait(opened))

    def update_and_downgrade(
        self, capability: WriteCapability, updates: Updates, new_frontier: int | Frontier
    ) -> WriteCapability:
        """See `AsyncStorage.update_and_downgrade`."""
        return self.update_many([(capability, updates, new_frontier)]).result()[0]

    def update_many(
        self, writes: Iterable[tuple[WriteCapability, Updates, int | Frontier]]
    ) -> Future[list[WriteCapability]]:
        """See `AsyncStorage.update_many`."""
        return self._core.update_many(writes)

    def acquire_capabilities(self, id: str) -> tuple[ReadCapability, WriteCapability]:
        """See `AsyncStorage.acquire_capabilities`."""
        return self._wait(self._core.acquire_capabilities(id))

    def acquire_read(self, id: str) -> ReadCapability:
        """See `AsyncStorage.acquire_read`."""
        return self._wait(self._core.acquire_read(id))

    # -- what capabilities can do -----------------------------------------------------------

    def clone(self, capability: K) -> K:
        """See `AsyncStorage.clone`."""
        return self._wait(self._core.clone(capability))

    def downgrade(self, capability: K, frontier: int | Frontier) -> K:
        """See `AsyncStorage.downgrade`."""
        return self._wait(self._core.downgrade(capability, frontier))

    def renew(self, capability: K) -> K:
        """See `AsyncStorage.renew`."""
        return self._wait(self._core.renew(capability))

    def drop(self, *capabilities: Capability) -> None:
        """See `AsyncStorage.drop`."""
        self._wait(self._core.drop(*capabilities))

    def apply(self, changes: Iterable[tuple[K, Frontier]]) -> list[K]:
        """See `AsyncStorage.apply`."""
        return self._wait(self._core.apply(changes))

    def close(self, id: str) -> None:
        """See `AsyncStorage.close`."""
        self._wait(self._core.close(id))

    # -- what is known ----------------------------------------------------------------------

    def description(self, id: str) -> CollectionDescription:
        """See `AsyncStorage.description`."""
        return self._core.description(id)

    def frontiers(self) -> dict[str, tuple[Frontier, Frontier]]:
        """See `AsyncStorage.frontiers`."""
        return self._core.frontiers()

    def capabilities(self, id: str) -> list[Hold]:
        """See `AsyncStorage.capabilities`."""
        return self._core.capabilities(id)
