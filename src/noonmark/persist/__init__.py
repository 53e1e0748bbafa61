"""Persist: named collections, made and kept definite through durable storage.

    from noonmark import persist
    from noonmark.rows.schema import Schema

    with persist.open("data") as client:
        write, read = client.create_or_load("orders", Schema.of(id="bigint", item="text"), ("id",))
        write.write([persist.Update((1, "lamp"), 10, 1)])
        write.seal(11).result()
        read.snapshot(10).result().rows()

The format on disk, the guarantees and what each test proves: ``docs/persist.md``.
"""

from noonmark.persist.client import Client, Options
from noonmark.persist.client import open_location as open
from noonmark.persist.codec import Codec, RowCodec
from noonmark.persist.config import Config
from noonmark.persist.location import Blob, Consensus
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.read.snapshot import Listen, Snapshot, Step
from noonmark.persist.write import MultiWriteHandle, WriteHandle
from noonmark.tvc import Update

__all__ = [
    "Blob",
    "Client",
    "Codec",
    "Config",
    "Consensus",
    "Listen",
    "MultiWriteHandle",
    "Options",
    "ReadHandle",
    "RowCodec",
    "Snapshot",
    "Step",
    "Update",
    "WriteHandle",
    "open",
]
