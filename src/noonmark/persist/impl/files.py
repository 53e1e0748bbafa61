"""A Blob in a folder of the local disk. The key is the path below the root.

A put writes a scratch file and fsyncs it, gives it the key as a second name (a hard link, which
refuses a taken name), fsyncs the folder, and only then removes the scratch name. So a reader sees a
whole object or none, and of racing calls exactly one links.

**Seen is durable.** Between link and fsync another process can see an object that power loss would
still take away; what it concluded from it would then be wrong. By the law of two names (see
`noonmark.persist.impl.scratch`) a reader knows such an object: it has a second name. The reader
then fsyncs the folder itself before it returns the object. The usual read pays one fstat for this.
(A backup made of hard links gives every object two names: still right, one fsync a read.) A listing
promises less: what it names may not be durable yet.

`put` over an existing object fsyncs the folder first, so that the older name is durable before a
rename replaces it: at every moment a durable object is there. `delete` does not fsync: an object
that comes back after power loss is garbage that was garbage before.

A folder is durable when its own name is: the first use of a folder by a handle fsyncs every folder
above it, whoever made them.

Errors. Until the link nothing has happened: full, read-only and forbidden are `StorageUnfit`,
everything else `Determinate`. From the link on every failure is `Indeterminate`.

Where it runs: small puts and gets run inline on the event loop, because a thread hop costs a third
of a put; above `INLINE_BYTES_MAX` they run in a thread.
"""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import suppress
from threading import Lock
from urllib.parse import quote

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import Determinate, Indeterminate, StorageError, StorageUnfit
from noonmark.persist.impl.file_system import FileSystem
from noonmark.persist.impl.folders import Folders
from noonmark.persist.impl.keys import check_key, check_prefix
from noonmark.persist.impl.listing import walk
from noonmark.persist.impl.scratch import Scratch
from noonmark.persist.location import BlobEntry

INLINE_BYTES_MAX = 256 * 1024
INLINE_NAMES_MAX = 256

_UNFIT = {
    errno.ENOSPC: "Free some space on that disk, or move the location to a larger one.",
    errno.EDQUOT: "The disk quota is used up: raise it or free some space.",
    errno.EROFS: "The file system is mounted read-only.",
    errno.EACCES: "Give this user the right to read and write that folder.",
    errno.EPERM: "This file system or user may not make hard links there; use a local disk.",
    errno.ENOTSUP: "This file system has no hard links; use a local disk.",
    errno.ENOTDIR: "A file stands where a folder is needed.",
}


class FileBlob:
    """See `noonmark.persist.location.Blob`. Opening one touches nothing; the first put makes it."""

    def __init__(
        self, root: str | os.PathLike[str], clock: Clock = SYSTEM, system: FileSystem | None = None
    ) -> None:
        self.root = os.path.abspath(root)
        self._clock = clock
        self._system = system or FileSystem()
        self._folders = Folders(self._system, self.root)
        self._lock = Lock()
        self._scratch: Scratch | None = None

    def __repr__(self) -> str:
        return f"FileBlob({self.root!r})"

    @property
    def url(self) -> str:
        """See `Blob.url`."""
        return f"file://{quote(self.root)}"

    def native_url(self, key: str) -> str | None:
        """See `Blob.native_url`."""
        return f"{self.url}/{check_key(key)}"

    async def get(self, key: str) -> bytes | None:
        """See `Blob.get`."""
        return await self._get(check_key(key), 0, None)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """See `Blob.get_range`."""
        return await self._get(check_key(key), start, length)

    async def _get(self, key: str, start: int, length: int | None) -> bytes | None:
        try:
            value = self._read(key, start, length, INLINE_BYTES_MAX)
            if value is None:
                value = await asyncio.to_thread(self._read, key, start, length, None)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._failed("read", key, error) from error
        return value

    def _read(self, key: str, start: int, length: int | None, most: int | None) -> bytes | None:
        """The bytes; None when they are more than `most`."""
        file = self._system.open_read(f"{self.root}/{key}")
        try:
            shape = self._system.shape(file)
            wanted = max(0, shape.bytes - start)
            if length is not None:
                wanted = min(wanted, length)
            if most is not None and wanted > most:
                return None
            if shape.links > 1:
                self._folders.settle(key)
            return self._system.read(file, start, wanted)
        finally:
            self._system.close(file)

    async def list(self, prefix: str) -> list[BlobEntry]:
        """See `Blob.list`. The objects of one folder of few names are seen at one instant."""
        check_prefix(prefix)
        try:
            entries = walk(self._system, self.root, prefix, INLINE_NAMES_MAX)
            if entries is None:
                entries = await asyncio.to_thread(walk, self._system, self.root, prefix, None)
        except OSError as error:
            raise self._failed("list", prefix, error) from error
        return sorted(entries or [])

    async def put(self, key: str, value: bytes) -> None:
        """See `Blob.put`."""
        await self._put(check_key(key), value, replace=True)

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """See `Blob.put_if_absent`."""
        return await self._put(check_key(key), value, replace=False)

    async def _put(self, key: str, value: bytes, replace: bool) -> bool:
        if len(value) > INLINE_BYTES_MAX:
            return await asyncio.to_thread(self._store, key, value, replace)
        return self._store(key, value, replace)

    def _store(self, key: str, value: bytes, replace: bool) -> bool:
        parent, _, name = key.rpartition("/")
        try:
            folder = self._folders.open(parent)
            scratch = self._writable()
            temporary = scratch.name(key)
            self._write(scratch.folder, temporary, value)
        except OSError as error:
            raise self._failed("write", key, error) from error
        try:
            self._system.link(scratch.folder, temporary, folder, name)
        except FileExistsError:
            if replace:
                self._replace(scratch.folder, temporary, folder, key)
            else:
                self._discard(scratch.folder, temporary)
            return replace
        except OSError as error:
            raise self._failed("write", key, error, begun=True) from error
        try:
            self._system.fsync_folder(folder)
        except OSError as error:
            raise self._failed("write", key, error, named=True) from error
        self._discard(scratch.folder, temporary)
        return True

    def _write(self, folder: int, name: str, value: bytes) -> None:
        """A durable scratch file, or none."""
        file = self._system.create(folder, name)
        try:
            self._system.write(file, value)
            self._system.fsync(file)
        except OSError:
            self._discard(folder, name)
            raise
        finally:
            self._system.close(file)

    def _replace(self, scratch: int, temporary: str, folder: int, key: str) -> None:
        try:
            self._system.fsync_folder(folder)
            self._system.rename(scratch, temporary, folder, key.rpartition("/")[2])
            self._system.fsync_folder(folder)
        except OSError as error:
            raise self._failed("write", key, error, named=True) from error

    def _discard(self, folder: int, name: str) -> None:
        with suppress(OSError):  # a scratch file that stays is swept later
            self._system.unlink(folder, name)

    def _writable(self) -> Scratch:
        """Our scratch folder; the first call sweeps what the dead left."""
        if self._scratch is None:
            with self._lock:
                if self._scratch is None:
                    self._folders.open("")
                    scratch = Scratch(self._system, self.root, self._clock)
                    scratch.sweep(self._folders.settle)
                    self._scratch = scratch
        return self._scratch

    async def delete(self, key: str) -> None:
        """See `Blob.delete`."""
        parent, _, name = check_key(key).rpartition("/")
        try:
            folder = self._system.open_folder(f"{self.root}/{parent}")
            try:
                self._system.unlink(folder, name)
            finally:
                self._system.close(folder)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise self._failed("delete", key, error, begun=True) from error

    async def close(self) -> None:
        """See `Blob.close`."""
        with self._lock:
            if self._scratch is not None:
                self._scratch.close()
                self._scratch = None
            self._folders.close()

    def _failed(
        self, what: str, key: str, error: OSError, begun: bool = False, named: bool = False
    ) -> StorageError:
        """The error to raise.

        `begun`: the failing call itself makes the change, and only an error that the kernel gives
        before it changes anything proves that it did not. `named`: the change was made before.
        """
        hint = _UNFIT.get(error.errno or 0)
        kind: type[StorageError] = Determinate
        if named or (begun and hint is None):
            kind = Indeterminate
        elif hint is not None:
            kind = StorageUnfit
        return kind(
            f"cannot {what} {key!r} in {self.root}",
            detail=error.strerror or str(error),
            hint=hint,
            url=self.url,
            key=key,
        )
