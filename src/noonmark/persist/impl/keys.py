"""What a key may be, for every Blob alike.

A key is one or more segments of ``[a-zA-Z0-9._=-]`` joined by ``/``; no segment is ``.`` or ``..``,
and a key is at most `KEY_LENGTH_MAX` long. So a key is a relative path that never leaves its root,
that needs no escaping in a URL, and that fits in one file name (`noonmark.persist.impl.scratch`).

A prefix is any beginning of a key, also the empty one: ``part/ab`` is a prefix of ``part/abc``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from noonmark.errors import InvalidValue

KEY_LENGTH_MAX = 200

_KEY = re.compile(r"[a-zA-Z0-9._=-]+(?:/[a-zA-Z0-9._=-]+)*")
_PREFIX = re.compile(r"(?:[a-zA-Z0-9._=-]+/)*[a-zA-Z0-9._=-]*")


@lru_cache(maxsize=4096)
def check_key(key: str) -> str:
    """The key itself, when it is one.

    >>> check_key("log/00000000000000000001")
    'log/00000000000000000001'
    """
    return _check("key", _KEY, key)


@lru_cache(maxsize=4096)
def check_prefix(prefix: str) -> str:
    """The prefix itself, when some key could start with it."""
    return _check("prefix", _PREFIX, prefix)


def _check(what: str, shape: re.Pattern[str], text: str) -> str:
    dots = any(segment in {".", ".."} for segment in text.split("/"))
    if len(text) > KEY_LENGTH_MAX or dots or not shape.fullmatch(text):
        raise InvalidValue(
            f"{text[:KEY_LENGTH_MAX]!r} is not a {what} of an object",
            hint=f"Segments of a-z, A-Z, 0-9 and ._=- joined by /, at most {KEY_LENGTH_MAX} long.",
            key=text,
        )
    return text
