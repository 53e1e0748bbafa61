"""Storage: explicit collections and the capabilities to read and write them.

The calls of the formalism: `Storage.create`, `Storage.subscribe_at`,
`Storage.update_and_downgrade`, `Storage.acquire_capabilities`. The laws are in
``docs/formalism.md``.
"""

from noonmark.storage.capability import Capability, ReadCapability, WriteCapability
from noonmark.storage.description import CollectionDescription
from noonmark.storage.storage import NO_LEASE_MS, Storage
from noonmark.storage.subscription import Subscription

__all__ = [
    "NO_LEASE_MS",
    "Capability",
    "CollectionDescription",
    "ReadCapability",
    "Storage",
    "Subscription",
    "WriteCapability",
]
