"""Work beside a statement's own: long texts in a thread, and what goes to its end in any case.

A statement of a megabyte must not make others wait (`aside`). What is not taken back once it has
begun is waited for to its end, whatever comes (`to_its_end`).

Where it runs: the adapter's loop; what is long in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
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


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for what is several steps, one of them durable: a cancel comes too late for it.

    Ended between two of them, the catalog in memory would not be the one that is stored.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
