"""Long values are written and read beside the loop.

Most values are copied as they are, or are a few microseconds. An array of a million timestamps is
seconds, and nobody else is answered while the loop writes it: so what is in many pieces is done by
one of two threads. Who sends many of those waits for them, and keeps only such values waiting.

    pieces    of an array or a record, its items and theirs; of a text that is taken apart, one for
              every ten characters

Where it runs: `beside` on the loop; what it is given in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from noonmark.adapter.pool import DaemonPool

T = TypeVar("T")

#: So many pieces are written on the loop: up to twenty milliseconds.
PIECES_MAX = 5_000
#: Texts up to this many characters are read on the loop.
CHARACTERS_MAX = 16_000
_CHARACTERS = 10
_POOL = DaemonPool(2, "noonmark-values")


async def beside(act: Callable[[], T]) -> T:
    """Do it in a thread."""
    return await _POOL.run(act)


def is_long(values: Iterable[Any]) -> bool:
    """Whether values have more pieces than are written on the loop; no more of them are counted."""
    left = PIECES_MAX
    for value in values:
        left -= _pieces(value, left)
        if left < 0:
            return True
    return False


def _pieces(value: Any, most: int) -> int:
    if isinstance(value, str | bytes):
        return 1 + len(value) // _CHARACTERS
    if not isinstance(value, tuple | list):
        return 1
    found = len(value)
    for each in value if found <= most else ():
        if isinstance(each, tuple | list | str | bytes):
            found += _pieces(each, most - found)
            if found > most:
                break
    return found
