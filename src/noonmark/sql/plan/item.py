"""What an item of FROM is: a relation with named columns, and the name that it is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from noonmark.rows.types import SqlType
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import Relation
from noonmark.sql.scope import Scope


@dataclass(frozen=True)
class Source:
    """A relation and the names of its columns; `order` is that of a subquery."""

    relation: Relation
    scope: Scope
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class Alias:
    """The name that an item of FROM is given, those of its columns, and types that define them."""

    name: str | None = None
    columns: list[str] = field(default_factory=list)
    types: list[SqlType] = field(default_factory=list)
