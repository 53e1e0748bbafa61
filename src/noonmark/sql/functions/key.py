"""The canonical form of a key, as a function that plans call and SQL cannot: its name has a blank.

Law: two values of one kind have the same form iff they are equal in SQL (`rows.order.key_bytes`).
So engines whose equality is that of bytes may compare keys of every type.
"""

from __future__ import annotations

from typing import Any

from noonmark.rows import types as t
from noonmark.rows.order import key_bytes
from noonmark.sql.functions.function import Any_, Function

KEY_FORM = "key form(any)"


def _form(types: tuple[t.SqlType, ...], value: Any) -> bytes:
    return key_bytes(types[0])(value)


TABLE = (Function("key form", (Any_.ANY,), t.Bytea(), _form, typed=True),)
