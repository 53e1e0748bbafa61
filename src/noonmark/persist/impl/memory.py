"""A Blob in the memory of this process.

Every `MemoryBlob` of the same name shares one store, as two handles of one bucket do, for as long
as the process lives: closing a handle and opening the name again finds the objects. Nothing crosses
to another process, so it serves tests, simulations and a location that is meant to be forgotten.

Law (order): a listing is one instant of the store, in key order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from threading import Lock

from noonmark.persist.impl.keys import check_key, check_prefix
from noonmark.persist.location import BlobEntry


class _Store:
    """The objects of one name; `keys` is kept sorted so that a listing touches only its part."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.objects: dict[str, bytes] = {}
        self.keys: list[str] = []

    def put(self, key: str, value: bytes, replace: bool) -> bool:
        with self.lock:
            if key not in self.objects:
                insort(self.keys, key)
            elif not replace:
                return False
            self.objects[key] = value
            return True

    def delete(self, key: str) -> None:
        with self.lock:
            if self.objects.pop(key, None) is not None:
                del self.keys[bisect_left(self.keys, key)]

    def list(self, prefix: str) -> list[BlobEntry]:
        with self.lock:
            entries = []
            for index in range(bisect_left(self.keys, prefix), len(self.keys)):
                key = self.keys[index]
                if not key.startswith(prefix):
                    break
                entries.append(BlobEntry(key, len(self.objects[key])))
            return entries


_stores: dict[str, _Store] = {}


class MemoryBlob:
    """See `noonmark.persist.location.Blob`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._store = _stores.setdefault(name, _Store())

    def __repr__(self) -> str:
        return f"MemoryBlob({self.url!r})"

    @property
    def url(self) -> str:
        """See `Blob.url`: equal only within this process."""
        return f"memory:{self._name}"

    async def get(self, key: str) -> bytes | None:
        """See `Blob.get`."""
        return self._store.objects.get(check_key(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """See `Blob.get_range`."""
        value = self._store.objects.get(check_key(key))
        return None if value is None else value[start : start + length]

    async def put(self, key: str, value: bytes) -> None:
        """See `Blob.put`."""
        self._store.put(check_key(key), bytes(value), replace=True)

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """See `Blob.put_if_absent`."""
        return self._store.put(check_key(key), bytes(value), replace=False)

    async def list(self, prefix: str) -> list[BlobEntry]:
        """See `Blob.list`."""
        return self._store.list(check_prefix(prefix))

    async def delete(self, key: str) -> None:
        """See `Blob.delete`."""
        self._store.delete(check_key(key))

    def native_url(self, key: str) -> str | None:  # noqa: ARG002 - Spark cannot read our memory
        """See `Blob.native_url`."""
        return None

    async def close(self) -> None:
        """See `Blob.close`."""
