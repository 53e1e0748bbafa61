"""The bytes of a COPY FROM, in blocks: by columns where they are ordinary, else row by row.

A block is whole lines, so that both ways begin where the other ended. What a block becomes is made
beside the loop: others go on meanwhile, and the client waits when it is quicker.

Where it runs: the loop.
"""

from __future__ import annotations

import asyncio
import datetime as dt

from noonmark.adapter.contract import CopyIn
from noonmark.serve.pgwire.copy import decoder
from noonmark.serve.pgwire.copy_columns import Columns

#: How much is decoded at once: less is done row by row, as it comes.
BLOCK_BYTES = 1 << 20


class Taken:
    """What a client has sent of a COPY."""

    def __init__(self, copy: CopyIn, zone: dt.tzinfo) -> None:
        types = [field.type for field in copy.fields]
        self._copy = copy
        names = [field.name for field in copy.fields]
        self._decode = decoder(copy.format, types, zone, names)
        columns = Columns(copy.format, types, zone)
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
            await self._block()

    async def end(self) -> None:
        """There is no more."""
        await self._by_rows(b"".join(self._pieces))
        if rows := self._decode.end():
            await self._copy.write(rows)

    async def _block(self) -> None:
        data = b"".join(self._pieces)
        cut = data.rfind(b"\n") + 1
        lines, rest = data[:cut], data[cut:]
        self._pieces, self._bytes = [rest], len(rest)
        if self._columns is not None and lines and self._decode.is_between_rows:
            table = await asyncio.to_thread(self._columns.decode, lines)
            if table is not None and self._copy.write_table(table):
                self._decode.skipped(table.num_rows)
                return
        await self._by_rows(lines or data)
        if not lines:
            self._pieces, self._bytes = [], 0

    async def _by_rows(self, data: bytes) -> None:
        if rows := self._decode.decode(data):
            await self._copy.write(rows)
