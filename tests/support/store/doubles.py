"""Doubles of stores that misbehave in one named way.

`HookedBlob` calls a hook before or after each call of a real Blob, to pause, count or fail it.
`FailingFileSystem` is the real file system but for one call that fails with a given errno.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from noonmark.persist.impl.file_system import FileSystem
from noonmark.persist.location import Blob, BlobEntry

Hook = Callable[[str, str], Awaitable[None]]


async def _nothing(method: str, key: str) -> None:
    """The hook that does nothing."""


class HookedBlob:
    """A Blob that tells `before(method, key)` and `after(method, key)` of every call."""

    def __init__(self, blob: Blob, before: Hook = _nothing, after: Hook = _nothing) -> None:
        self._blob = blob
        self.before = before
        self.after = after
        self.calls: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return self._blob.url

    async def get(self, key: str) -> bytes | None:
        return await self._call("get", key)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._call("get_range", key, start, length)

    async def put(self, key: str, value: bytes) -> None:
        await self._call("put", key, value)

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        return await self._call("put_if_absent", key, value)

    async def list(self, prefix: str) -> list[BlobEntry]:
        return await self._call("list", prefix)

    async def delete(self, key: str) -> None:
        await self._call("delete", key)

    def native_url(self, key: str) -> str | None:
        return self._blob.native_url(key)

    async def close(self) -> None:
        await self._blob.close()

    async def _call(self, method: str, key: str, *rest: Any) -> Any:
        self.calls.append((method, key))
        await self.before(method, key)
        answer = await getattr(self._blob, method)(key, *rest)
        await self.after(method, key)
        return answer


class UnconditionalBlob(HookedBlob):
    """A store that takes the condition of a put and ignores it."""

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        await self._blob.put(key, value)
        return True


class FailingFileSystem(FileSystem):
    """The real file system; from `fail` on, one kind of call fails, with or without its effect."""

    def __init__(self) -> None:
        self._method = ""
        self._errno = 0
        self._has_effect = False

    def fail(self, method: str, errno: int, has_effect: bool = False) -> None:
        self._method, self._errno, self._has_effect = method, errno, has_effect

    def heal(self) -> None:
        self._method = ""

    def __getattribute__(self, name: str) -> Any:
        call = super().__getattribute__(name)
        if name.startswith("_") or name != self._method:
            return call

        def failing(*arguments: Any) -> None:
            if self._has_effect:
                call(*arguments)
            raise OSError(self._errno, os.strerror(self._errno))

        return failing
