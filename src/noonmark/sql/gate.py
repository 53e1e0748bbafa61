"""PostgreSQL's own grammar says what SQL is.

sqlglot reads the SQL of thirty databases and forgives much: ``VALUES (1) (2)`` had one row, and
``substring(x from 2`` ended by itself. So every text that a client sends is first read by the
grammar of PostgreSQL itself (libpg_query), which says no more than whether it is SQL, or what
PostgreSQL would say. The tree is sqlglot's.

Law: a query, a statement that writes, or an expression that PostgreSQL's grammar refuses is refused
with PostgreSQL's message and position. What is stored was read before, and is not asked again: a
newer grammar takes nobody's view away.

The text comes without what is ours alone (AS OF, the types of WITH MUTUALLY RECURSIVE). Only the
boundaries of statements are asked for, so no tree is made, however deep it would be.
"""

from __future__ import annotations

import re
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from noonmark.errors import InvalidSyntax, TooComplex, Unsupported, UsageError, WindowingError
from noonmark.sql.lexer import tokens_of

_EXHAUSTED = "memory exhausted"
#: What the grammar itself refuses with another SQLSTATE than that of a syntax error.
_KINDS: tuple[tuple[str, type[UsageError]], ...] = (
    ("frame ", WindowingError),
    (".* not (yet )?implemented", Unsupported),
)


def _native() -> Any:
    """The library as postgast binds it, without its front door: that reads classes of all nodes."""
    found = find_spec("postgast")
    assert found is not None, "it is among the dependencies"
    folder = (found.submodule_search_locations or [""])[0]
    spec = spec_from_file_location("postgast_native", Path(folder) / "native.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lib


_LIBRARY = _native()


def check(text: str, offset: int = 0) -> None:
    """Refuse a text that is not SQL; it starts after `offset` characters of a whole text.

    Raises:
        InvalidSyntax, WindowingError, Unsupported: what PostgreSQL says, with the position in the
            whole text.
        TooComplex: it is nested deeper than PostgreSQL's grammar reads.
    """
    # Comments in comments take PostgreSQL's scanner the square of their number.
    plain = _without_comments(text) if "/*" in text else text
    result = _LIBRARY.pg_query_split_with_parser(plain.encode(errors="replace"))
    try:
        if not result.error:
            return
        message = result.error.contents.message.decode()
        at = result.error.contents.cursorpos
    finally:
        _LIBRARY.pg_query_free_split_result(result)
    if message.startswith(_EXHAUSTED):
        raise TooComplex.of_statement()
    kind = next((kind for words, kind in _KINDS if re.match(words, message)), InvalidSyntax)
    raise kind(message, position=offset + at if at else None)


def _without_comments(text: str) -> str:
    """Blanks for comments; the ends of lines stay, since strings go on behind them."""
    pieces, at = [], 0
    for token in tokens_of(text):
        pieces += [re.sub(r"[^\n]", " ", text[at : token.start]), text[token.start : token.end]]
        at = token.end
    return "".join(pieces)
