"""Domains: what makes and changes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from noonmark.rows.types import SqlType
from noonmark.sql.statement.base import Name, ScalarText, Statement
from noonmark.sql.statement.tables import CheckText


@dataclass(frozen=True)
class CreateDomain(Statement):
    """CREATE DOMAIN name AS type [DEFAULT expression] [NOT NULL] [CHECK (condition)]."""

    name: Name
    type: SqlType
    default: ScalarText | None = None
    not_null: bool = False
    checks: tuple[CheckText, ...] = ()


class DomainAction:
    """What ALTER DOMAIN does, beside renaming it or giving it away."""


@dataclass(frozen=True)
class DomainDefault(DomainAction):
    """SET DEFAULT, or DROP DEFAULT."""

    default: ScalarText | None


@dataclass(frozen=True)
class DomainNotNull(DomainAction):
    """SET NOT NULL, or DROP NOT NULL."""

    not_null: bool


@dataclass(frozen=True)
class DomainAdd(DomainAction):
    """ADD [CONSTRAINT name] CHECK (condition) [NOT VALID]."""

    check: CheckText
    is_valid: bool = True


@dataclass(frozen=True)
class DomainDrop(DomainAction):
    """DROP CONSTRAINT [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DomainRename(DomainAction):
    """RENAME CONSTRAINT name TO new."""

    name: str
    new: str


@dataclass(frozen=True)
class DomainValidate(DomainAction):
    """VALIDATE CONSTRAINT name."""

    name: str


@dataclass(frozen=True)
class AlterDomain(Statement):
    """ALTER DOMAIN name action."""

    name: Name
    action: DomainAction
    kind: str = field(default="domain", compare=False)
