"""Statements that make, change and drop objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from noonmark.sql.statement.base import Name, Options, QueryText, ScalarText, Statement
from noonmark.sql.statement.tables import ColumnSpec


@dataclass(frozen=True)
class Generator:
    """FROM LOAD GENERATOR kind (options): intervals are in milliseconds."""

    kind: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """FROM FILES 'pattern' (options)."""

    pattern: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Kafka:
    """FROM KAFKA CONNECTION c (TOPIC 't', ...)."""

    connection: Name
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Postgres:
    """FROM POSTGRES CONNECTION c (PUBLICATION 'p', ...)."""

    connection: Name
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Webhook:
    """FROM WEBHOOK: its BODY FORMAT is the source's format."""

    options: Options = field(default_factory=dict)


Upstream = Generator | Files | Kafka | Postgres | Webhook


@dataclass(frozen=True)
class Format:
    """FORMAT kind with its options: ``header``, ``delimiter``, ``schema``, ``connection``."""

    kind: Literal["json", "csv", "text", "bytes", "avro", "protobuf", "parquet"]
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Subsource:
    """One table of FOR TABLES: what upstream calls it, and its name here."""

    upstream: Name
    name: Name


@dataclass(frozen=True)
class CheckInput:
    """What the CHECK of a webhook may look at: HEADERS, BODY or a SECRET, as text or BYTES."""

    what: Literal["headers", "body", "secret"]
    name: str
    as_bytes: bool = False
    secret: Name | None = None


@dataclass(frozen=True)
class Check:
    """CHECK of a webhook: what must hold of a post."""

    condition: ScalarText
    given: tuple[CheckInput, ...] = ()


@dataclass(frozen=True)
class CreateSource(Statement):
    """CREATE SOURCE. `tables` is "all" for FOR ALL TABLES, None without FOR.

    `key_format` is that of FORMAT KEY ... VALUE ...; `include` are the INCLUDE columns, each
    (what, name) or ("header", name, which header); `progress` is EXPOSE PROGRESS AS.
    """

    name: Name
    upstream: Upstream
    columns: tuple[ColumnSpec, ...] | None = None
    key: tuple[str, ...] = ()
    format: Format | None = None
    key_format: Format | None = None
    include: tuple[tuple[str, ...], ...] = ()
    envelope: Literal["none", "upsert", "debezium"] | None = None
    tables: tuple[Subsource, ...] | Literal["all"] | None = None
    progress: Name | None = None
    check: Check | None = None
    if_not_exists: bool = False
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE [OR REPLACE] [TEMPORARY] VIEW."""

    name: Name
    query: QueryText
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class CreateMaterializedView(Statement):
    """CREATE [OR REPLACE] MATERIALIZED VIEW ... WITH (RETAIN HISTORY FOR ..., MAINTENANCE = ...).

    Options: ``retain_history`` (milliseconds), ``maintenance`` ("auto" or "strict").
    """

    name: Name
    query: QueryText
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class CreateIndex(Statement):
    """CREATE INDEX; no name means one is chosen, no expressions mean the DEFAULT INDEX.

    `where` is the condition of the rows that it is of.
    """

    name: Name | None
    on: Name
    expressions: tuple[ScalarText, ...] = ()
    if_not_exists: bool = False
    options: Options = field(default_factory=dict)
    unique: bool = False
    nulls_distinct: bool = True
    where: ScalarText | None = None


@dataclass(frozen=True)
class SecretRef:
    """SECRET name, where an option's value may be a secret."""

    name: Name


@dataclass(frozen=True)
class CreateConnection(Statement):
    """CREATE CONNECTION name TO kind (options); ``validate`` is the option of WITH."""

    name: Name
    kind: str
    options: Options
    if_not_exists: bool = False
    validate: bool | None = None


@dataclass(frozen=True)
class CreateSecret(Statement):
    """CREATE SECRET name AS value."""

    name: Name
    value: ScalarText = field(repr=False)
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateSink(Statement):
    """CREATE SINK name FROM view INTO KAFKA CONNECTION c (TOPIC 't') ..."""

    name: Name
    source: Name
    connection: Name
    options: Options = field(default_factory=dict)
    key: tuple[str, ...] = ()
    format: Format | None = None
    envelope: Literal["upsert", "debezium"] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateSchema(Statement):
    """CREATE SCHEMA name."""

    name: Name
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE name."""

    name: str
    if_not_exists: bool = False


#: What DROP, ALTER ... RENAME, COMMENT ON and SHOW CREATE call the kinds of objects.
ObjectKind = Literal[
    "table",
    "source",
    "view",
    "materialized-view",
    "index",
    "connection",
    "secret",
    "sink",
    "role",
    "schema",
    "database",
    "column",
    "sequence",
    "type",
    "domain",
]


@dataclass(frozen=True)
class Drop(Statement):
    """DROP kind names [CASCADE | RESTRICT]."""

    kind: ObjectKind
    names: tuple[Name, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Rename(Statement):
    """ALTER kind name RENAME TO new."""

    kind: ObjectKind
    name: Name
    new: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetSchema(Statement):
    """ALTER kind name SET SCHEMA schema."""

    kind: ObjectKind
    name: Name
    schema: str
    if_exists: bool = False


@dataclass(frozen=True)
class Swap(Statement):
    """ALTER kind name SWAP WITH other, in the same schema."""

    kind: ObjectKind
    name: Name
    other: str


@dataclass(frozen=True)
class Comment(Statement):
    """COMMENT ON kind name IS text; for a column, `column` is its name. None takes it away."""

    kind: ObjectKind
    name: Name
    text: str | None
    column: str | None = None


@dataclass(frozen=True)
class AlterSource(Statement):
    """ALTER SOURCE s SET (...) or RESET (...), and ALTER kind ... SET (RETAIN HISTORY ...)."""

    kind: ObjectKind
    name: Name
    set: Options = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True)
class AlterSourceTables(Statement):
    """ALTER SOURCE s {ADD | DROP | REFRESH} TABLE ..., and ALTER SOURCE s REFRESH.

    Attributes:
        name: the source.
        action: "add", "drop" or "refresh".
        tables: for ADD, what upstream calls each and what it is to be called; otherwise the names
            of the relations; () for REFRESH of the whole source.
        if_exists: whether a source that is not there is no error.
        cascade: for DROP.
    """

    name: Name
    action: str
    tables: tuple[Subsource, ...] = ()
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Refresh(Statement):
    """REFRESH MATERIALIZED VIEW name."""

    name: Name


@dataclass(frozen=True)
class ValidateConnection(Statement):
    """VALIDATE CONNECTION c."""

    name: Name


@dataclass(frozen=True)
class AlterOwner(Statement):
    """ALTER kind name OWNER TO role."""

    kind: ObjectKind
    name: Name
    owner: str
    if_exists: bool = False


@dataclass(frozen=True)
class AlterSecret(Statement):
    """ALTER SECRET name AS expression."""

    name: Name
    value: ScalarText = field(repr=False)
    if_exists: bool = False


@dataclass(frozen=True)
class AlterConnection(Statement):
    """ALTER CONNECTION name SET (option = value, ...) or RESET (option, ...)."""

    name: Name
    set: Options = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    if_exists: bool = False
    validate: bool = False
