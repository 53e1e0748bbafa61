"""Texts that were read: a statement is a value, so those that come again are read once, for all.

Law (bounded): what is remembered takes at most `_TEXTS_BYTES`, however long or dense the texts.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

from noonmark.adapter.contract import Prepared
from noonmark.adapter.session.memory import Cache, text_bytes
from noonmark.sql.statement import statement as st

#: Texts up to this length are remembered, so many of them, and as much as this of what they are.
_LENGTH_MAX, _TEXTS_MAX, _TEXTS_BYTES = 4_096, 1_024, 64 << 20
_FIELD_BYTES = 1_000

_PARSED: Cache[str, tuple[st.Parsed, ...]] = Cache("texts", _TEXTS_BYTES, _TEXTS_MAX)


def remembered(text: str) -> tuple[st.Parsed, ...] | None:
    """The statements of a text that was read before; None where it was not."""
    return _PARSED.renew(text) if text in _PARSED else None


def remember(text: str, parsed: tuple[st.Parsed, ...]) -> None:
    """A text has been read."""
    if len(text) <= _LENGTH_MAX:
        _PARSED.keep(text, parsed, text_bytes(text))


def prepared_bytes(prepared: Prepared) -> int:
    """About what a prepared statement takes."""
    return text_bytes(prepared.text) + _FIELD_BYTES * len(prepared.fields or ())
