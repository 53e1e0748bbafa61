"""What statements are made of: names, the texts of queries and expressions, options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp


@dataclass(frozen=True)
class Name:
    """The name of an object, folded as PostgreSQL does: ``s.t`` is ("s", "t")."""

    parts: tuple[str, ...]
    position: int = field(default=1, compare=False)

    @property
    def last(self) -> str:
        """The name without its schema."""
        return self.parts[-1]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class QueryText:
    """A query: its own text, where that starts, and its syntax tree with positions of the whole."""

    text: str
    position: int = field(compare=False)
    tree: exp.Expr = field(compare=False, repr=False)


@dataclass(frozen=True)
class ScalarText:
    """An expression: its text, where that starts, and its syntax tree."""

    text: str
    position: int = field(compare=False)
    tree: exp.Expr = field(compare=False, repr=False)


#: The options of WITH (...), by lower-case name; an option without a value is True.
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Statement:
    """The base of all."""
