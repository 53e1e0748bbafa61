"""A storage location: bytes by key (`Blob`) and one ordered log of small entries (`Consensus`).

These two contracts are all that persist asks of the outside world. Every implementation passes the
one suite in ``tests/conformance``; a new store is a new file in ``persist/impl`` and one line in
that suite.

Errors. Every method may raise `Determinate` (it did not happen; nothing changed), `Indeterminate`
(it may have happened, now or later) or `StorageUnfit` (it can never work here: full, read-only,
unfit). A method that only reads never raises `Indeterminate`. No other exception leaves an
implementation.

Where it runs: driver and executors. An implementation is opened from a URL (`open_blob`,
`open_consensus`), so that a task can open its own; it holds no state that another process would
need.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class BlobEntry(NamedTuple):
    """One object in a listing."""

    key: str
    bytes: int


class Blob(Protocol):
    """Durable bytes by key.

    Keys are relative paths: segments of ``[a-zA-Z0-9._=-]`` joined by ``/``. An object is
    immutable: the same key is only ever put with the same bytes. When `put` or `put_if_absent`
    returns, the object is durable (on local disk: file and folder fsynced) and every later `get`,
    in any process, sees it whole. There is no moment at which a reader sees a part of an object.
    """

    @property
    def url(self) -> str:
        """The URL that `open_blob` turns into an equal Blob in another process."""

    async def get(self, key: str) -> bytes | None:
        """The whole object, or None when there is none."""

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """Bytes ``[start, start + length)``, cut at the end; None when there is no object."""

    async def put(self, key: str, value: bytes) -> None:
        """Store the object."""

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """Store the object unless the key exists: of racing calls exactly one gets True."""

    async def list(self, prefix: str) -> list[BlobEntry]:
        """Every object whose key starts with `prefix`, in key order."""

    async def delete(self, key: str) -> None:
        """Remove the object; removing what is not there is no error."""

    def native_url(self, key: str) -> str | None:
        """A URL by which Spark itself can read the object (``file:``, ``s3a:``), or None."""

    async def close(self) -> None:
        """Let go of connections. The Blob is not used afterwards."""


class Consensus(Protocol):
    """One ordered log. Entries are numbered 1, 2, 3, ... without holes; an entry never changes.

    Law (one history): if `append(n, x)` returned True anywhere, no `read` anywhere returns another
    entry at n. Law (head): `head` never goes back, also across `truncate`, restarts and writers
    that were paused for long.
    """

    @property
    def url(self) -> str:
        """The URL that `open_consensus` turns into an equal Consensus in another process."""

    async def head(self) -> int:
        """The number of the newest entry; 0 when there never was one."""

    async def append(self, seqno: int, entry: bytes) -> bool:
        """Append `entry` as number `seqno`; the caller has seen entry ``seqno - 1``.

        True: it is durable and it is *the* entry of that number. False: that number is taken or
        truncated. Then it is another's, unless an earlier try was `Indeterminate` or the log was
        truncated meanwhile: whoever must know looks for the entry, or for what came of it.
        """

    async def read(self, start: int, limit: int) -> list[bytes]:
        """Entries ``start, start + 1, ...``: at most `limit`, fewer at the end of the log.

        Raises `noonmark.errors.MissingObject` when `start` has been truncated.
        """

    async def note(self, seqno: int) -> None:
        """Write down apart from the entries that the log has come to `seqno`, which is durable.

        May be called late and seldom, or not at all: what was noted is a lower bound of `head`, by
        which it shows when the newest entries are taken away.
        """

    async def noted(self) -> int:
        """The number that was noted last; 0 when none was. At most `head`, if asked before it."""

    async def truncate(self, below: int) -> None:
        """Forget entries numbered less than `below`, at most ``head() + 1``. Idempotent."""

    async def close(self) -> None:
        """Let go of connections. The Consensus is not used afterwards."""
