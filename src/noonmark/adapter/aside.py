"""Work on long texts beside the loop: a statement of a megabyte must not make others wait.

Where it runs: the adapter's loop; what is long in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: A text of this many characters is read and planned in a few milliseconds.
LENGTH_MAX = 5_000


async def aside(length: int, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it: here if the text it is about is short, else in a thread."""
    if length <= LENGTH_MAX:
        return act(*args, **kwargs)
    return await asyncio.to_thread(act, *args, **kwargs)
