"""Statements: what a text asks for, one frozen value per kind.

A statement says what was written and nothing about what exists: names are not resolved, types are
named but not checked against anything, queries are trees that nobody planned yet. So the same text
always gives the same statement.

Positions count characters of the whole text from 1, also inside the tree of a query: an error of
any later stage points into what the client sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from noonmark.rows.types import SqlType
from noonmark.sql.statement.base import Name, Options, QueryText, ScalarText, Statement
from noonmark.sql.statement.literals import LiteralRows
from noonmark.sql.statement.named_types import AddLabel, CreateEnum, NamedType, RenameLabel
from noonmark.sql.statement.notify import Notify
from noonmark.sql.statement.objects import (
    AlterConnection,
    AlterOwner,
    AlterSecret,
    AlterSource,
    AlterSourceTables,
    Check,
    CheckInput,
    Comment,
    CreateConnection,
    CreateDatabase,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSecret,
    CreateSink,
    CreateSource,
    CreateView,
    Drop,
    Files,
    Format,
    Generator,
    Kafka,
    ObjectKind,
    Postgres,
    Refresh,
    Rename,
    SecretRef,
    SetSchema,
    Subsource,
    Swap,
    Upstream,
    ValidateConnection,
    Webhook,
)
from noonmark.sql.statement.roles import (
    AlterDefaultPrivileges,
    AlterRole,
    CreateRole,
    Grant,
    ReassignOwned,
    Revoke,
    SetRole,
    SetSessionAuthorization,
)
from noonmark.sql.statement.tables import (
    AddColumn,
    AddColumnAction,
    AddConstraint,
    AlterSequence,
    AlterTable,
    AlterType,
    CheckText,
    Columns,
    ColumnSpec,
    CreateSequence,
    CreateTable,
    CreateTableAs,
    DropColumn,
    DropConstraint,
    ForeignText,
    Identity,
    Like,
    RenameColumn,
    SetConstraints,
    SetDefault,
    SetNotNull,
    TableAction,
    UniqueText,
)

__all__ = [
    "AddColumn",
    "AddColumnAction",
    "AddConstraint",
    "AddLabel",
    "AlterConnection",
    "AlterDefaultPrivileges",
    "AlterOwner",
    "AlterRole",
    "AlterSecret",
    "AlterSequence",
    "AlterSource",
    "AlterSourceTables",
    "AlterTable",
    "AlterType",
    "Audit",
    "Begin",
    "Check",
    "CheckInput",
    "CheckText",
    "CloseCursor",
    "ColumnSpec",
    "Columns",
    "Comment",
    "Commit",
    "Copy",
    "CreateConnection",
    "CreateDatabase",
    "CreateEnum",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateRole",
    "CreateSchema",
    "CreateSecret",
    "CreateSequence",
    "CreateSink",
    "CreateSource",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "Deallocate",
    "Declare",
    "Delete",
    "Discard",
    "Drop",
    "DropColumn",
    "DropConstraint",
    "Empty",
    "ExecutePrepared",
    "Explain",
    "Fetch",
    "Files",
    "ForeignText",
    "Format",
    "Generator",
    "Grant",
    "Identity",
    "Insert",
    "Kafka",
    "Like",
    "Lock",
    "Maintain",
    "Name",
    "NamedType",
    "Notify",
    "ObjectKind",
    "Options",
    "Parsed",
    "Postgres",
    "PrepareStatement",
    "QueryText",
    "ReassignOwned",
    "Refresh",
    "Release",
    "Rename",
    "RenameColumn",
    "RenameLabel",
    "ResetVariable",
    "Revoke",
    "Rollback",
    "RollbackTo",
    "Savepoint",
    "ScalarText",
    "SecretRef",
    "Select",
    "SetConstraints",
    "SetDefault",
    "SetNotNull",
    "SetRole",
    "SetSchema",
    "SetSessionAuthorization",
    "SetTransaction",
    "SetVariable",
    "Show",
    "ShowVariable",
    "Statement",
    "Subscribe",
    "Subsource",
    "Swap",
    "TableAction",
    "Truncate",
    "UniqueText",
    "Update",
    "Upstream",
    "ValidateConnection",
    "Webhook",
]


# --- reads


@dataclass(frozen=True)
class Select(Statement):
    """A query, [AS OF [AT LEAST] t]: `as_of` is an expression of milliseconds or a timestamp."""

    query: QueryText
    as_of: ScalarText | None = None
    as_of_at_least: ScalarText | None = None


@dataclass(frozen=True)
class Subscribe(Statement):
    """SUBSCRIBE [TO] (query | name) [WITH (...)] [AS OF t] [UP TO t] [ENVELOPE ...].

    A name is also there as `query`: ``SELECT * FROM name``. `key` is that of ENVELOPE UPSERT or
    DEBEZIUM; `order` the columns of WITHIN TIMESTAMP ORDER BY.
    """

    query: QueryText
    name: Name | None = None
    snapshot: bool = True
    progress: bool = False
    as_of: ScalarText | None = None
    as_of_at_least: ScalarText | None = None
    up_to: ScalarText | None = None
    envelope: Literal["upsert", "debezium"] | None = None
    key: tuple[str, ...] = ()
    order: tuple[ScalarText, ...] = ()


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN stage: of a statement, or of a materialized view by name."""

    stage: Literal["plan", "timestamp", "materialized view"]
    statement: Statement | None = None
    name: Name | None = None
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Audit(Statement):
    """AUDIT MATERIALIZED VIEW v [AS OF t]."""

    name: Name
    as_of: ScalarText | None = None


@dataclass(frozen=True)
class Show(Statement):
    """SHOW of objects: `what` is "tables", "sources", "columns", "create view", ...

    `name` is the object of COLUMNS FROM, CREATE and INDEXES ON; `schema` that of FROM.
    """

    what: str
    name: Name | None = None
    schema: str | None = None
    like: str | None = None
    where: ScalarText | None = None


@dataclass(frozen=True)
class ShowVariable(Statement):
    """SHOW variable; `name` "all" shows every one."""

    name: str


# --- writes


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO table [(columns)] query | DEFAULT VALUES [ON CONFLICT ...] [RETURNING ...].

    `query` None means DEFAULT VALUES; `conflict` is what ON CONFLICT does, about which keys.
    """

    table: Name
    columns: tuple[str, ...] = ()
    query: QueryText | LiteralRows | None = None
    returning: tuple[exp.Expr, ...] = field(default=(), compare=False)
    alias: str | None = None
    conflict: Literal["nothing", "update"] | None = None
    conflict_keys: tuple[exp.Expr, ...] = field(default=(), compare=False)
    conflict_of: exp.Expr | None = field(default=None, compare=False)
    conflict_constraint: str | None = None
    assignments: tuple[tuple[str, exp.Expr], ...] = field(default=(), compare=False)
    conflict_where: exp.Expr | None = field(default=None, compare=False)
    text: str = ""
    overriding: Literal["system", "user"] | None = None


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE table SET column = expression, ... [FROM ...] [WHERE ...] [RETURNING ...]."""

    table: Name
    assignments: tuple[tuple[str, exp.Expr], ...] = field(compare=False)
    alias: str | None = None
    source: exp.Expr | None = field(default=None, compare=False)
    where: exp.Expr | None = field(default=None, compare=False)
    returning: tuple[exp.Expr, ...] = field(default=(), compare=False)
    text: str = ""


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM table [USING ...] [WHERE ...] [RETURNING ...]."""

    table: Name
    alias: str | None = None
    using: tuple[exp.Expr, ...] = field(default=(), compare=False)
    where: exp.Expr | None = field(default=None, compare=False)
    returning: tuple[exp.Expr, ...] = field(default=(), compare=False)
    text: str = ""


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE tables [RESTART IDENTITY] [CASCADE]."""

    tables: tuple[Name, ...]
    restart: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Lock(Statement):
    """LOCK tables IN ACCESS SHARE MODE."""

    tables: tuple[Name, ...]


@dataclass(frozen=True)
class Copy(Statement):
    """COPY table [(columns)] FROM STDIN | TO STDOUT, or COPY (statement) TO STDOUT.

    Options: ``format`` ("text", "csv", "binary"), ``delimiter``, ``null``, ``header``, ``quote``,
    ``escape``.
    """

    direction: Literal["from", "to"]
    table: Name | None = None
    columns: tuple[str, ...] = ()
    statement: Statement | None = None
    options: Options = field(default_factory=dict)


# --- the session


@dataclass(frozen=True)
class SetVariable(Statement):
    """SET [SESSION | LOCAL] name = value | DEFAULT (None). Several values are a tuple."""

    name: str
    value: str | tuple[str, ...] | None
    local: bool = False
    position: int = field(default=1, compare=False)


@dataclass(frozen=True)
class ResetVariable(Statement):
    """RESET name; "all" resets every one."""

    name: str


@dataclass(frozen=True)
class Begin(Statement):
    """BEGIN or START TRANSACTION; `isolation` as written, lower case."""

    isolation: str | None = None
    read_only: bool | None = None
    start: bool = False


@dataclass(frozen=True)
class SetTransaction(Statement):
    """SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION (`session`)."""

    isolation: str | None = None
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True)
class Commit(Statement):
    """COMMIT or END."""


@dataclass(frozen=True)
class Rollback(Statement):
    """ROLLBACK or ABORT."""


@dataclass(frozen=True)
class Savepoint(Statement):
    """SAVEPOINT name."""

    name: str


@dataclass(frozen=True)
class Release(Statement):
    """RELEASE [SAVEPOINT] name."""

    name: str


@dataclass(frozen=True)
class RollbackTo(Statement):
    """ROLLBACK TO [SAVEPOINT] name."""

    name: str


@dataclass(frozen=True)
class Declare(Statement):
    """DECLARE name CURSOR [WITH HOLD] FOR statement."""

    name: str
    statement: Statement
    hold: bool = False


@dataclass(frozen=True)
class Fetch(Statement):
    """FETCH count | ALL (None) name [WITH (TIMEOUT ...)]: `timeout_ms` None waits for ever."""

    name: str
    count: int | None = 1
    timeout_ms: int | None = None


@dataclass(frozen=True)
class CloseCursor(Statement):
    """CLOSE name; None closes every one."""

    name: str | None


@dataclass(frozen=True)
class PrepareStatement(Statement):
    """PREPARE name [(types)] AS statement; `text` is the statement's own."""

    name: str
    types: tuple[SqlType, ...]
    text: str
    position: int = field(default=1, compare=False)


@dataclass(frozen=True)
class ExecutePrepared(Statement):
    """EXECUTE name (values)."""

    name: str
    values: tuple[ScalarText, ...] = ()


@dataclass(frozen=True)
class Deallocate(Statement):
    """DEALLOCATE name; None lets go of every one."""

    name: str | None


@dataclass(frozen=True)
class Discard(Statement):
    """DISCARD ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True)
class Maintain(Statement):
    """VACUUM, ANALYZE or CHECKPOINT: what the server does by itself."""

    what: str
    tables: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Empty(Statement):
    """No statement: white space or comments."""


@dataclass(frozen=True)
class Parsed:
    """One statement of a text: its own text, and where that starts (from 1)."""

    statement: Statement
    text: str
    position: int = field(default=1, compare=False)
