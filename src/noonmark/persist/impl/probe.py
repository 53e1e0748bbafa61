"""The probe: does this store keep the one promise that everything rests on?

`put_if_absent` must refuse a key that exists. There are stores that take the condition and ignore
it; on one of those two writers would both believe that they committed. So a location is probed
before its first write: two puts with different bytes under a fresh key, of which the second must be
refused and must have changed nothing. Probing costs four calls and leaves nothing behind.
"""

from __future__ import annotations

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import StorageUnfit
from noonmark.persist.impl.redact import redact
from noonmark.persist.location import Blob

_FIRST = b"first"
_SECOND = b"second"


async def probe(blob: Blob, clock: Clock = SYSTEM) -> None:
    """Return when conditional puts hold; raise `StorageUnfit` when they do not."""
    key = f"probe/{clock.fresh_id()}"
    try:
        first = await blob.put_if_absent(key, _FIRST)
        second = await blob.put_if_absent(key, _SECOND)
        stored = await blob.get(key)
    finally:
        await blob.delete(key)
    if (first, second, stored) != (True, False, _FIRST):
        raise StorageUnfit(
            f"the store at {redact(blob.url)} does not honour conditional puts",
            detail=f"Two puts if absent of one key gave {first} and {second}; "
            f"the object then read {stored!r}.",
            hint="Use a store that supports If-None-Match on PUT, or give a PostgreSQL URL as "
            "--consensus.",
            url=redact(blob.url),
        )
