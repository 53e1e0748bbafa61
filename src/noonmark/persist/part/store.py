"""Parts in the blob store: written once under a fresh name, read back verified.

A part is named by the epoch of its writer, its collection and a fresh id. Only a commit makes it
exist for readers; a part that was written and never committed is an orphan of its epoch, and once
that epoch is over nothing can commit it any more (`gc`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

import pyarrow as pa

from noonmark.errors import MissingObject
from noonmark.persist.config import Config
from noonmark.persist.location import Blob
from noonmark.persist.part import run
from noonmark.persist.part.pages import read_rows
from noonmark.persist.part.part import EncodedPart, Part, decode_part, encode_part
from noonmark.persist.retry import Retries
from noonmark.persist.runtime import Runtime

PART_PREFIX = "part/"


def part_key(epoch: int, collection: int, fresh_id: str) -> str:
    """The name of a new part."""
    return f"{epoch_prefix(epoch)}c{collection}/{fresh_id}.parquet"


def epoch_prefix(epoch: int) -> str:
    """Under which all parts of one epoch are."""
    return f"{PART_PREFIX}e{epoch:08d}/"


class PartStore:
    """Encodes, puts, gets and decodes parts. Runs on the loop."""

    def __init__(self, blob: Blob, runtime: Runtime, config: Config, retries: Retries) -> None:
        self.blob = blob
        self.runtime = runtime
        self.config = config
        self.retries = retries
        self.epoch = 0

    async def write(
        self, collection: int, key: tuple[str, ...], schema_id: int, table: pa.Table
    ) -> tuple[Part, ...]:
        """Sort a table of updates and store it as the parts of one run."""
        table = await self.runtime.offload(run.sort, table, key)
        rows = self.config.part_rows_max
        pieces = [table.slice(at, rows) for at in range(0, table.num_rows, rows)]
        tasks = [self.write_sorted(collection, key, schema_id, piece) for piece in pieces]
        return tuple(await asyncio.gather(*tasks))

    async def write_sorted(
        self,
        collection: int,
        key: tuple[str, ...],
        schema_id: int,
        tables: pa.Table | Iterable[pa.Table],
        *,
        consolidated: bool = False,
    ) -> Part:
        """Store one sorted table as one part."""
        name = part_key(self.epoch, collection, self.runtime.clock.fresh_id())

        def encode() -> EncodedPart:
            return encode_part(
                tables if isinstance(tables, pa.Table) else iter(tables),
                blob_key=name,
                key_columns=key,
                schema_id=schema_id,
                consolidated=consolidated,
            )

        encoded = await self.runtime.offload(encode)
        await self.retries.run("write part", lambda: self.blob.put(name, encoded.data))
        return encoded.part

    async def fetch(self, part: Part, start: int = 0, length: int | None = None) -> bytes:
        """The bytes of a part, or a range of them, not verified yet."""

        def read() -> Awaitable[bytes | None]:
            if length is None:
                return self.blob.get(part.key)
            return self.blob.get_range(part.key, start, length)

        data = await self.retries.run("read part", read)
        if data is None:
            raise MissingObject(
                f'stored object "{part.key}" is gone',
                detail="The state refers to it.",
                hint="Restore this object from a copy of the storage location.",
                object=part.key,
            )
        return data

    @staticmethod
    def decode(part: Part, data: bytes, columns: Sequence[str] | None) -> pa.Table:
        """The updates in a part's bytes, verified; `Corrupt` otherwise."""
        return decode_part(data, part, columns)

    async def look_up(
        self, part: Part, column: str, probes: pa.Array, columns: Sequence[str] | None
    ) -> pa.Table:
        """The rows of a part that have one of `probes` in its first key column."""
        return await self.retries.run(
            "read pages", lambda: read_rows(self.blob, part, column, probes, columns)
        )
