"""``name`` and ``"char"``: texts of PostgreSQL's catalog, which are cut."""

from __future__ import annotations

from noonmark.rows import types as t
from noonmark.sql.functions.function import Function

#: The bytes of a name, without the zero behind them.
_NAME_BYTES = 63


def _name(text: str) -> str:
    """As many characters as there is room for: none is cut in two."""
    return text.encode()[:_NAME_BYTES].decode(errors="ignore")


def _char(text: str) -> str:
    """The first byte; one that is no character is shown as PostgreSQL shows it."""
    first = text.encode()[:1]
    return first.decode() if first.isascii() else f"\\{first[0]:o}"


TABLE = (
    Function("name", (t.Text,), t.Text("name"), _name, linear=True),
    # In quotes, as SQL writes it: char(x) is no call.
    Function('"char"', (t.Text,), t.Text("char"), _char, linear=True),
)
