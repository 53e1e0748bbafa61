"""How many statements were run since the process began, by kind, and how many of them failed."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

_PREPARED = "Typed"
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class StatementTotals:
    """See the module; kinds are those of the grammar, so there are few."""

    def __init__(self) -> None:
        self.ok: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def end(self, statement: object, *, ok: bool) -> None:
        """One was run."""
        (self.ok if ok else self.failed)[kind_of(statement)] += 1


def kind_of(statement: object) -> str:
    """The kind of a statement, in words; one that was prepared is of the kind that it was.

    >>> class CreateTable: ...
    >>> kind_of(CreateTable())
    'create table'
    """
    name = type(statement).__name__
    if name == _PREPARED:
        return kind_of(getattr(statement, "statement", ""))
    return _in_words(name)


@cache
def _in_words(name: str) -> str:
    return _WORDS.sub(" ", name.removeprefix(_PREPARED)).lower()
