"""Where the statements of a text begin: the position of an error counts in what a client sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def placed(text: str, statements: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each statement of a text, a verbatim piece of it, behind where it begins.

    >>> list(placed("select 1;select 1; x", ["select 1", "select 1", "x"]))
    [(0, 'select 1'), (9, 'select 1'), (19, 'x')]
    """
    at = 0
    for statement in statements:
        at = max(text.find(statement, at), 0)
        yield at, statement
        at += len(statement)
