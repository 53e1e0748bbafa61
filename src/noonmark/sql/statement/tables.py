"""Tables and sequences: columns and constraints as they are written, and what changes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from noonmark.errors import SqlError
from noonmark.rows.domain import Domain
from noonmark.rows.types import SqlType
from noonmark.sql.statement.base import Name, Options, QueryText, ScalarText, Statement


class InvalidTable(SqlError, id="invalid_table", sqlstate="42P16"):
    """A table that cannot be like that: two primary keys, a key of columns that take NULL."""


@dataclass(frozen=True)
class CheckText:
    """A CHECK as it is written; `column` is the one that it stands at."""

    condition: ScalarText
    name: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class UniqueText:
    """UNIQUE (columns), or PRIMARY KEY (columns)."""

    columns: tuple[str, ...]
    name: str | None = None
    nulls_distinct: bool = True
    primary: bool = False
    position: int = field(default=1, compare=False)


Action = Literal["no action", "restrict", "cascade", "set null", "set default"]


@dataclass(frozen=True)
class ForeignText:
    """FOREIGN KEY (columns) REFERENCES table (others); no others mean its primary key."""

    columns: tuple[str, ...]
    table: Name
    others: tuple[str, ...] = ()
    name: str | None = None
    on_delete: Action = "no action"
    on_update: Action = "no action"
    deferrable: bool = False
    deferred: bool = False
    position: int = field(default=1, compare=False)


@dataclass(frozen=True)
class Identity:
    """GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY (options)."""

    always: bool
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnSpec:
    """A column as CREATE writes it.

    `serial` columns make their own sequence; `generated` is what a stored column is computed from.
    A column of a domain has the type that the domain is over, once the domain is looked up.
    """

    name: str
    type: SqlType
    nullable: bool = True
    default: ScalarText | None = None
    position: int = field(default=1, compare=False)
    checks: tuple[CheckText, ...] = ()
    serial: bool = False
    identity: Identity | None = None
    generated: ScalarText | None = None
    domain: Domain | None = None


@dataclass(frozen=True)
class Like:
    """(LIKE table INCLUDING ...), and how many columns stand before it."""

    table: Name
    including: frozenset[str] = frozenset()
    at: int = 0


@dataclass(frozen=True)
class Columns:
    """What stands in the brackets of CREATE TABLE."""

    columns: tuple[ColumnSpec, ...]
    checks: tuple[CheckText, ...] = ()
    uniques: tuple[UniqueText, ...] = ()
    foreigns: tuple[ForeignText, ...] = ()
    likes: tuple[Like, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return next((each.columns for each in self.uniques if each.primary), ())


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE [TEMPORARY] TABLE; `key` are the columns of PRIMARY KEY."""

    name: Name
    columns: tuple[ColumnSpec, ...]
    key: tuple[str, ...] = ()
    if_not_exists: bool = False
    options: Options = field(default_factory=dict)
    temporary: bool = False
    on_commit_drop: bool = False
    checks: tuple[CheckText, ...] = ()
    uniques: tuple[UniqueText, ...] = ()
    foreigns: tuple[ForeignText, ...] = ()
    likes: tuple[Like, ...] = ()


@dataclass(frozen=True)
class CreateTableAs(Statement):
    """CREATE [TEMPORARY] TABLE name [(columns)] AS query [WITH NO DATA]; SELECT ... INTO name."""

    name: Name
    query: QueryText
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    options: Options = field(default_factory=dict)
    temporary: bool = False
    on_commit_drop: bool = False
    with_data: bool = True


@dataclass(frozen=True)
class AddColumn(Statement):
    """ALTER TABLE t ADD [COLUMN] c type."""

    name: Name
    column: ColumnSpec
    if_not_exists: bool = False


@dataclass(frozen=True)
class TableAction:
    """One action of ALTER TABLE."""


@dataclass(frozen=True)
class AddConstraint(TableAction):
    """ADD [CONSTRAINT name] ..."""

    constraint: CheckText | UniqueText | ForeignText


@dataclass(frozen=True)
class DropConstraint(TableAction):
    """DROP CONSTRAINT name."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class SetDefault(TableAction):
    """ALTER COLUMN c {SET DEFAULT expression | DROP DEFAULT}."""

    column: str
    default: ScalarText | None


@dataclass(frozen=True)
class DropExpression(TableAction):
    """ALTER COLUMN c DROP EXPRESSION [IF EXISTS]."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetNotNull(TableAction):
    """ALTER COLUMN c {SET | DROP} NOT NULL."""

    column: str
    not_null: bool


@dataclass(frozen=True)
class DropColumn(TableAction):
    """DROP [COLUMN] [IF EXISTS] c."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class RenameColumn(TableAction):
    """RENAME [COLUMN] c TO new."""

    name: str
    new: str


@dataclass(frozen=True)
class AlterType(TableAction):
    """ALTER COLUMN c [SET DATA] TYPE type [USING expression]."""

    column: str
    type: SqlType
    using: ScalarText | None = None
    domain: Domain | None = None


@dataclass(frozen=True)
class AddColumnAction(TableAction):
    """ADD [COLUMN] c type DEFAULT ..., with constraints that stand at it."""

    column: ColumnSpec
    constraints: tuple[CheckText | UniqueText | ForeignText, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterTable(Statement):
    """ALTER TABLE name action, ..."""

    name: Name
    actions: tuple[TableAction, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class CreateSequence(Statement):
    """CREATE [TEMPORARY] SEQUENCE name options."""

    name: Name
    options: Options = field(default_factory=dict)
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class AlterSequence(Statement):
    """ALTER SEQUENCE name options; `restart` is among them."""

    name: Name
    options: Options = field(default_factory=dict)
    if_exists: bool = False


@dataclass(frozen=True)
class SetConstraints(Statement):
    """SET CONSTRAINTS {ALL | names} {DEFERRED | IMMEDIATE}; no names are all."""

    names: tuple[Name, ...]
    deferred: bool
