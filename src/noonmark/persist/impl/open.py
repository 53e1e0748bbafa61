"""From a URL to a Blob or a Consensus.

| URL | Blob | Consensus |
|---|---|---|
| ``memory:NAME`` | `MemoryBlob` | over that Blob |
| a path, ``file:///path`` | `FileBlob` | over that Blob |
| ``s3://bucket/prefix?option=...``, ``gs://``, ``az://`` | `ObjectStoreBlob` | over that Blob |
| ``postgres://...?location=NAME`` | - | `PostgresConsensus` |

Opening touches nothing: the first call does. Where it runs: driver and executors.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from noonmark.errors import ConfigError
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.impl.redact import redact
from noonmark.persist.location import Blob, Consensus

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_POSTGRES = ("postgres", "postgresql")
_OBJECT_STORES = ("s3", "gs", "az")


def open_blob(url: str | os.PathLike[str]) -> Blob:
    """The Blob of a URL or path."""
    text = os.fspath(url)
    scheme = _scheme(text)
    if scheme is None and text:
        return FileBlob(text)
    if scheme == "memory" and len(text) > len("memory:"):
        return MemoryBlob(text.partition(":")[2])
    if scheme == "file":
        return FileBlob(_file_path(text))
    if scheme in _OBJECT_STORES:
        # Here, because importing it takes longer than most processes that use files want to wait.
        # door: object stores: only who has one
        from noonmark.persist.impl.object_store import ObjectStoreBlob

        return ObjectStoreBlob(text)
    if scheme in _POSTGRES:
        raise ConfigError(
            f"{redact(text)} cannot hold objects",
            hint="PostgreSQL serves as --consensus; give --data a path or an object store.",
        )
    raise ConfigError(
        f"{redact(text)!r} is not a storage location",
        hint="Give a path, file:///path, s3://bucket/prefix, gs://..., az://... or memory:NAME.",
    )


def open_consensus(url: str | os.PathLike[str]) -> Consensus:
    """The Consensus of a URL or path."""
    text = os.fspath(url)
    if _scheme(text) in _POSTGRES:
        # door: PostgreSQL's client: only who has such an object
        from noonmark.persist.impl.postgres import PostgresConsensus

        return PostgresConsensus(text)
    return BlobConsensus(open_blob(text))


def _scheme(url: str) -> str | None:
    found = _SCHEME.match(url)
    return found[1].lower() if found else None


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or not path.startswith("/") or parts.query:
        raise ConfigError(f"{url!r} is not a file URL", hint="Write file:///absolute/path.")
    return path
