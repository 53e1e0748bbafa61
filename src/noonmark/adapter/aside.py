"""Work beside a statement's own: long texts in a thread, and what goes to its end in any case.

A statement of a megabyte must not make others wait (`aside`). What is not taken back once it has
begun is waited for to its end, whatever comes (`to_its_end`).

Where it runs: the adapter's loop; what is long in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

from noonmark.compute.jvm.session import import_spark, spark_is_imported

P = ParamSpec("P")
T = TypeVar("T")

#: A text of this many characters is read and planned in a few milliseconds.
LENGTH_MAX = 5_000


async def aside(length: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it: here if the text it is about is short, else in a thread."""
    if length <= LENGTH_MAX:
        return act(*args, **kwargs)
    return await asyncio.to_thread(act, *args, **kwargs)


async def spark_modules() -> None:
    """Have Spark's modules read, in a thread: that takes a second, or as long as others do it."""
    if not spark_is_imported():
        await asyncio.to_thread(import_spark)


class _Going:
    """What goes to its end: what of it may be ended now, and whether somebody wants that."""

    def __init__(self) -> None:
        self.part: asyncio.Future[Any] | None = None
        self.is_unwanted = False

    def cancel(self) -> None:
        self.is_unwanted = True
        if self.part is not None:
            self.part.cancel()


_GOING: ContextVar[_Going | None] = ContextVar("noonmark_going", default=None)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for what is several steps, one of them durable: a cancel comes too late for it.

    Ended between two of them, the catalog in memory would not be the one that is stored. Only what
    it says to be `cancellable` is ended.
    """
    going = _Going()
    context = copy_context()
    context.run(_GOING.set, going)
    task = asyncio.get_running_loop().create_task(work, context=context)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            going.cancel()
    return task.result()


async def cancellable(work: Coroutine[Any, Any, T]) -> T:
    """A part of what goes `to_its_end` that only reads and computes, or can be undone."""
    going = _GOING.get()
    if going is None or going.part is not None:
        return await work
    if going.is_unwanted:
        work.close()
        raise asyncio.CancelledError
    part = asyncio.ensure_future(work)
    going.part = part
    try:
        return await part
    finally:
        going.part = None
