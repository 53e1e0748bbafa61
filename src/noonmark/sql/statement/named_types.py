"""Types that somebody made: what makes and changes them, and a type that only has a name yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from noonmark.rows.types import SqlType
from noonmark.sql.statement.base import Name, Statement


@dataclass(frozen=True, slots=True)
class NamedType(SqlType):
    """A type of users as a statement writes it: what it is, the catalog says."""

    spelling: ClassVar[str] = "unresolved"
    name: Name

    def __str__(self) -> str:
        return str(self.name)


@dataclass(frozen=True)
class CreateEnum(Statement):
    """CREATE TYPE name AS ENUM (labels)."""

    name: Name
    labels: tuple[str, ...]


@dataclass(frozen=True)
class AddLabel(Statement):
    """ALTER TYPE name ADD VALUE label [{BEFORE | AFTER} other]; the end without one."""

    name: Name
    label: str
    before: bool = False
    other: str | None = None
    if_not_exists: bool = False
    kind: str = field(default="type", compare=False)


@dataclass(frozen=True)
class RenameLabel(Statement):
    """ALTER TYPE name RENAME VALUE old TO new."""

    name: Name
    old: str
    new: str
    kind: str = field(default="type", compare=False)
