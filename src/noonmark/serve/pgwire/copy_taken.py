"""The bytes of a COPY FROM, in blocks: by columns where they are ordinary, else row by row.

A block is whole rows, so that both ways begin where the other ended. What a block becomes is made
beside the loop: others go on meanwhile, and the client waits when it is quicker.

Where it runs: the loop.
"""

from __future__ import annotations

import asyncio
import datetime as dt

from noonmark.adapter.contract import CopyIn
from noonmark.serve.pgwire.copy import decoder
from noonmark.serve.pgwire.copy_binary import BinaryColumns
from noonmark.serve.pgwire.copy_columns import Columns

#: How much is decoded at once.
BLOCK_BYTES = 1 << 20
#: What is less than this is done row by row: columns would cost more.
LITTLE_BYTES = 1 << 10
#: What is more than this is done beside the loop.
LONG_BYTES = 16 << 10


class Taken:
    """What a client has sent of a COPY."""

    def __init__(self, copy: CopyIn, zone: dt.tzinfo) -> None:
        types = [field.type for field in copy.fields]
        self._copy = copy
        names = [field.name for field in copy.fields]
        self._decode = decoder(copy.format, types, zone, names)
        is_binary = copy.format.kind == "binary"
        columns = BinaryColumns(types) if is_binary else Columns(copy.format, types, zone)
        self._columns = columns if copy.takes_tables and columns.can else None
        self._pieces: list[bytes] = []
        self._bytes = 0

    async def take(self, data: bytes) -> None:
        """More bytes."""
        if self._columns is None:
            await self._by_rows(data)
            return
        self._pieces.append(data)
        self._bytes += len(data)
        if self._bytes >= BLOCK_BYTES:
            await self._block(self._columns)

    async def end(self) -> None:
        """There is no more."""
        if self._columns is not None and self._bytes >= LITTLE_BYTES:
            await self._block(self._columns)
        await self._by_rows(b"".join(self._pieces))
        if rows := self._decode.end():
            await self._copy.write(rows)

    async def _block(self, columns: Columns | BinaryColumns) -> None:
        data = b"".join(self._pieces)
        self._pieces, self._bytes = [], 0
        if not self._decode.is_between_rows:
            opening = columns.opening(data)
            await self._by_rows(data[:opening])
            data = data[opening:]
        end, table = 0, None
        if self._decode.is_between_rows:
            end, table = await asyncio.to_thread(columns.decode, data)
        if table is not None and self._copy.write_table(table):
            self._decode.skipped(table.num_rows)
        elif end:
            await self._by_rows(data[:end])
        else:
            await self._by_rows(data)
            return
        self._pieces, self._bytes = [data[end:]], len(data) - end

    async def _by_rows(self, data: bytes) -> None:
        decode = self._decode.decode
        long = len(data) > LONG_BYTES
        if rows := await asyncio.to_thread(decode, data) if long else decode(data):
            await self._copy.write(rows)
