"""Storage: explicit collections and the capabilities to read and write them.

The calls of the formalism: `Storage.create`, `Storage.subscribe_at`,
`Storage.update_and_downgrade`, `Storage.acquire_capabilities`. The laws are in
``docs/formalism.md``. `Storage` is for threads, `AsyncStorage` has the same calls for coroutines.
"""

from noonmark.persist.hold import NO_LEASE_MS
from noonmark.storage.capability import Capability, ReadCapability, WriteCapability
from noonmark.storage.core import AsyncStorage
from noonmark.storage.description import CollectionDescription
from noonmark.storage.storage import Storage
from noonmark.storage.subscription import AsyncSubscription, Subscription

__all__ = [
    "NO_LEASE_MS",
    "AsyncStorage",
    "AsyncSubscription",
    "Capability",
    "CollectionDescription",
    "ReadCapability",
    "Storage",
    "Subscription",
    "WriteCapability",
]
