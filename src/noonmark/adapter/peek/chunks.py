"""Rows on their way to a client: `contract.Chunks`."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Sequence,
)
from typing import Any

from noonmark.adapter.contract import Chunks, Row

#: Rows that go to a client at once.
CHUNK_ROWS = 1_000

LetGo = Callable[[], Coroutine[Any, Any, None]]


class Listed:
    """Rows that are there already, all of them."""

    __slots__ = ("rows",)

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    async def _chunks(self) -> AsyncIterator[Sequence[Row]]:
        for start in range(0, len(self.rows), CHUNK_ROWS):
            yield self.rows[start : start + CHUNK_ROWS]

    def __aiter__(self) -> AsyncIterator[Sequence[Row]]:
        return self._chunks()

    async def aclose(self) -> None:
        """Nothing is held."""


class Streamed:
    """Rows that are made as they are asked for; `let_go` ends what they need, once.

    `is_whole` says that all of them are there, and nothing more of the location is read.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[Sequence[Row], None],
        let_go: LetGo | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        self.is_whole = is_whole
        self._chunks = chunks
        self._let_go = let_go

    async def _all(self) -> AsyncIterator[Sequence[Row]]:
        try:
            async for chunk in self._chunks:
                yield chunk
        finally:
            await self.aclose()

    def __aiter__(self) -> AsyncIterator[Sequence[Row]]:
        return self._all()

    def then(self, more: LetGo) -> Streamed:
        """The same stream, which lets go of more at its end."""
        before, self._let_go = self._let_go, None

        async def both() -> None:
            if before is not None:
                await before()
            await more()

        return Streamed(self._chunks, both)

    async def aclose(self) -> None:
        """End the stream and let go of what it holds. Idempotent."""
        let_go, self._let_go = self._let_go, None
        try:
            await self._chunks.aclose()
        finally:
            if let_go is not None:
                await let_go()


#: Does something, unless it is ended first.
Watch = Callable[[Coroutine[Any, Any, Sequence[Row] | None]], Awaitable[Sequence[Row] | None]]


class Watched:
    """Rows whose statement is watched over, until `over` is told that there are no more."""

    def __init__(self, chunks: Chunks, watch: Watch, over: Callable[[], None]) -> None:
        self._chunks = chunks
        self._watch = watch
        self._over = over
        self._rest: AsyncIterator[Sequence[Row]] | None = None

    def __aiter__(self) -> AsyncIterator[Sequence[Row]]:
        return self

    async def __anext__(self) -> Sequence[Row]:
        if self._rest is None:
            self._rest = self._chunks.__aiter__()
        chunk = await self._watch(_next(self._rest))
        if chunk is None:
            self._over()
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """See `contract.Chunks.aclose`."""
        self._over()
        await self._chunks.aclose()


async def _next(rest: AsyncIterator[Sequence[Row]]) -> Sequence[Row] | None:
    return await anext(rest, None)
