"""The error tree: every error that Noonmark raises, grouped by what the caller must do about it.

    NoonmarkError
    ├── UsageError                fix the call; nothing changed
    │   ├── BelowUpper            a write at a time that is already complete
    │   ├── NotBelowFrontier      an update at or beyond the frontier that was to seal it
    │   ├── FrontierRegression    a frontier asked to move backwards
    │   ├── BeforeSince           a read at a time whose history is gone
    │   ├── NotYetComplete        a read, told not to wait, at a time that is still open
    │   ├── UnknownCollection     no collection of that name or id
    │   ├── NameTaken             a collection of that name exists
    │   ├── SchemaMismatch        rows, or a new schema, that do not fit the collection
    │   ├── InvalidValue          a value that its type cannot hold
    │   ├── CapabilityInvalid     a capability or hold that is unknown, dropped or expired
    │   ├── ReadOnly              a write through a read-only handle
    │   ├── Stopped               a call on a runtime that was stopped
    │   ├── ConfigError           an option, URL or environment that cannot work
    │   ├── Unsupported           refused by name, because it is not built or never will be
    │   ├── UndefinedObject       no role, connection, secret or setting of that name
    │   ├── DuplicateObject       a role, schema or the like of that name exists
    │   ├── WrongObjectType       a statement for another kind of object
    │   ├── DependentObjects      a drop of what others need
    │   ├── InsufficientPrivilege  a right that the role does not have
    │   ├── InFailedTransaction   a statement in a transaction that an error ended
    │   ├── QueryCanceled         a statement ended by the user's wish or by its timeout
    │   ├── NotNullViolation      NULL for a column that takes none
    │   ├── UniqueViolation       a second row for a key
    │   ├── ProtocolViolation     a message that the client may not send, or not now
    │   ├── NotAuthorized         a user who is not who they say, or may not come in
    │   │   └── InvalidPassword   a password that is not the user's
    │   ├── UnknownStatement      no prepared statement of that name
    │   ├── StatementTaken        a prepared statement of that name exists
    │   ├── UnknownPortal         no portal or cursor of that name
    │   ├── PortalTaken           a portal or cursor of that name exists
    │   ├── CopyFailed            the client gave up a COPY
    │   ├── BadCopyData           data of a COPY that is not rows of its columns
    │   └── SqlError              a statement that means nothing; its position says where
    │       ├── InvalidSyntax     text that is not SQL
    │       ├── UndefinedTable    a name in FROM that nothing has
    │       ├── UndefinedColumn   a column that no table in FROM has
    │       ├── AmbiguousColumn   a column that several tables in FROM have
    │       ├── DuplicateAlias    a table name given twice in one FROM
    │       ├── UndefinedFunction  no function or operator of that name takes these arguments
    │       ├── DatatypeMismatch  an expression of the wrong type
    │       ├── GroupingError     a column outside GROUP BY, or an aggregate where none may be
    │       ├── WindowingError    a window function where none may be
    │       └── InvalidReference  a position in ORDER BY or GROUP BY that is not in the list
    ├── EvaluationError           a query that has no answer on the rows of that time: it is data
    │   ├── DivisionByZero        a division by zero
    │   ├── OutOfRange            a number outside the range of its type
    │   ├── DatetimeOutOfRange    a date or time outside the range of its type
    │   ├── InvalidText           text that the type it is cast to cannot read
    │   ├── TooManyRows           a subquery used as an expression gave more than one row
    │   └── InvalidArgument       an argument that the function refuses
    ├── Interrupted               the statement was ended from outside; it may be sent again
    │   ├── QueryCanceled         the client asked for it, or its time was up
    │   └── TooManyConnections    the server has as many clients as it takes
    ├── SerializationFailure      others changed what a transaction had read: run it again
    ├── WriterError               another writer has the location
    │   ├── LockHeld              somebody else holds the write lock
    │   └── Fenced                the lock was taken over; this writer can commit nothing more
    ├── StorageError              the outside world failed
    │   ├── Determinate           the operation did not happen: retry it
    │   ├── Indeterminate         the operation may have happened: read back before you retry
    │   └── StorageUnfit          the store is full, read-only or ignores conditional puts
    ├── SourceError               upstream of a source failed
    │   ├── SourceStalled         it may answer later: wait, and ask again
    │   └── SourceBroken          it will never give this data: definite, so it is written as data
    └── IntegrityError            restore from a copy; nothing is guessed
        ├── Corrupt               a stored object does not match its checksum
        ├── MissingObject         a stored object that the state refers to is gone
        └── NewerFormat           the location was written by a newer version

Every class has a stable ``id`` and a PostgreSQL ``SQLSTATE``; every instance has a message, typed
``fields``, and where they help a ``detail`` and a ``hint``.
"""

from __future__ import annotations

from typing import Any, ClassVar


class NoonmarkError(Exception):
    """The root. ``str(error)`` is the message, then detail and hint on lines of their own."""

    id: ClassVar[str] = "noonmark"
    sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.fields = fields

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"detail": self.detail, "hint": self.hint, "position": self.position}
        return (_rebuild, (type(self), self.message, state, self.fields))


def _rebuild(
    kind: type[NoonmarkError], message: str, state: dict[str, Any], fields: dict[str, Any]
) -> NoonmarkError:
    """Unpickle an error: errors cross from executors to the driver whole."""
    return kind(message, **state, **fields)


class UsageError(NoonmarkError):
    """Fix the call; nothing changed."""

    id = "usage"
    sqlstate = "22023"


class BelowUpper(UsageError):
    """A write at a time that the collection has already declared complete."""

    id = "below_upper"
    sqlstate = "22008"


class NotBelowFrontier(UsageError):
    """An update at or beyond the frontier that the same call declares complete."""

    id = "not_below_frontier"
    sqlstate = "22008"


class FrontierRegression(UsageError):
    """A frontier was asked to move backwards."""

    id = "frontier_regression"
    sqlstate = "22008"


class BeforeSince(UsageError):
    """A read at a time whose history has been compacted away."""

    id = "before_since"
    sqlstate = "22008"


class NotYetComplete(UsageError):
    """A read that was told not to wait, at a time that is still open."""

    id = "not_yet_complete"
    sqlstate = "55000"


class UnknownCollection(UsageError):
    """No collection has that name or id."""

    id = "unknown_collection"
    sqlstate = "42P01"


class NameTaken(UsageError):
    """A collection of that name exists already."""

    id = "name_taken"
    sqlstate = "42P07"


class SchemaMismatch(UsageError):
    """Rows that do not fit the collection, or a schema change that would break old data."""

    id = "schema_mismatch"
    sqlstate = "42804"


class InvalidValue(UsageError):
    """A value that its type cannot hold."""

    id = "invalid_value"
    sqlstate = "22P02"


class CapabilityInvalid(UsageError):
    """A capability or hold that is unknown, dropped or expired."""

    id = "capability_invalid"
    sqlstate = "55000"


class ReadOnly(UsageError):
    """A write through a handle that can only read."""

    id = "read_only"
    sqlstate = "25006"


class Stopped(UsageError):
    """A call on a runtime that was stopped."""

    id = "stopped"
    sqlstate = "57P01"


class ConfigError(UsageError):
    """An option, URL or environment that cannot work."""

    id = "config"
    sqlstate = "F0000"


class Unsupported(UsageError):
    """Refused by name: not built yet, or refused on purpose."""

    id = "unsupported"
    sqlstate = "0A000"


class ProtocolViolation(UsageError):
    """The client sent a message that it may not send, or not now."""

    id = "protocol_violation"
    sqlstate = "08P01"


class NotAuthorized(UsageError):
    """The user is not who they say, or may not come in."""

    id = "not_authorized"
    sqlstate = "28000"


class InvalidPassword(NotAuthorized):
    """The password is not the user's."""

    id = "invalid_password"
    sqlstate = "28P01"


class UnknownStatement(UsageError):
    """No prepared statement has that name."""

    id = "unknown_statement"
    sqlstate = "26000"


class StatementTaken(UsageError):
    """A prepared statement of that name exists already."""

    id = "statement_taken"
    sqlstate = "42P05"


class UnknownPortal(UsageError):
    """No portal or cursor has that name."""

    id = "unknown_portal"
    sqlstate = "34000"


class PortalTaken(UsageError):
    """A portal or cursor of that name exists already."""

    id = "portal_taken"
    sqlstate = "42P03"


class CopyFailed(UsageError):
    """The client gave up a COPY; nothing of it is there."""

    id = "copy_failed"
    sqlstate = "57014"


class BadCopyData(UsageError):
    """The data of a COPY are not rows of its columns."""

    id = "bad_copy_data"
    sqlstate = "22P04"


class UndefinedObject(UsageError):
    """Nothing of that kind has the name: a role, a connection, a secret, a setting."""

    id = "undefined_object"
    sqlstate = "42704"


class DuplicateObject(UsageError):
    """A role, a schema or another thing that is no collection has the name already."""

    id = "duplicate_object"
    sqlstate = "42710"


class WrongObjectType(UsageError):
    """The object exists and is of another kind than the statement is for."""

    id = "wrong_object_type"
    sqlstate = "42809"


class DependentObjects(UsageError):
    """Others need what was to be dropped; the detail names them."""

    id = "dependent_objects"
    sqlstate = "2BP01"


class InsufficientPrivilege(UsageError):
    """The role may not do that."""

    id = "insufficient_privilege"
    sqlstate = "42501"


class InFailedTransaction(UsageError):
    """An error ended the transaction; only its end is taken now."""

    id = "in_failed_transaction"
    sqlstate = "25P02"


class QueryCanceled(UsageError):
    """The statement was ended, by the user's wish or by its timeout."""

    id = "query_canceled"
    sqlstate = "57014"


class NotNullViolation(UsageError):
    """NULL for a column that takes none."""

    id = "not_null_violation"
    sqlstate = "23502"


class UniqueViolation(UsageError):
    """A second row for a key."""

    id = "unique_violation"
    sqlstate = "23505"


class SqlError(UsageError):
    """A statement that means nothing; ``position`` is where, in characters from 1."""

    id = "sql"
    sqlstate = "42000"


class InvalidSyntax(SqlError):
    """The text is not SQL."""

    id = "invalid_syntax"
    sqlstate = "42601"


class UndefinedTable(SqlError):
    """Nothing has the name that FROM asks for."""

    id = "undefined_table"
    sqlstate = "42P01"


class UndefinedColumn(SqlError):
    """No table in FROM has the column."""

    id = "undefined_column"
    sqlstate = "42703"


class AmbiguousColumn(SqlError):
    """Several tables in FROM have the column."""

    id = "ambiguous_column"
    sqlstate = "42702"


class DuplicateAlias(SqlError):
    """Two tables of one FROM have the same name."""

    id = "duplicate_alias"
    sqlstate = "42712"


class UndefinedFunction(SqlError):
    """No function or operator of that name takes these arguments."""

    id = "undefined_function"
    sqlstate = "42883"


class DatatypeMismatch(SqlError):
    """An expression is not of the type that its place asks for."""

    id = "datatype_mismatch"
    sqlstate = "42804"


class GroupingError(SqlError):
    """A column is neither grouped nor aggregated, or an aggregate stands where none may."""

    id = "grouping"
    sqlstate = "42803"


class WindowingError(SqlError):
    """A window function stands where none may."""

    id = "windowing"
    sqlstate = "42P20"


class InvalidReference(SqlError):
    """ORDER BY or GROUP BY names a position that the select list does not have."""

    id = "invalid_reference"
    sqlstate = "42P10"


class EvaluationError(NoonmarkError):
    """A query has no answer on the rows of that time; when the bad row is gone it has one again."""

    id = "evaluation"
    sqlstate = "22000"


class DivisionByZero(EvaluationError):
    """A division by zero."""

    id = "division_by_zero"
    sqlstate = "22012"


class OutOfRange(EvaluationError):
    """A number outside the range of its type."""

    id = "out_of_range"
    sqlstate = "22003"


class DatetimeOutOfRange(EvaluationError):
    """A date, time or interval outside the range of its type."""

    id = "datetime_out_of_range"
    sqlstate = "22008"


class InvalidText(EvaluationError):
    """Text that the type it is cast to cannot read."""

    id = "invalid_text"
    sqlstate = "22P02"


class TooManyRows(EvaluationError):
    """A subquery used as an expression gave more than one row."""

    id = "too_many_rows"
    sqlstate = "21000"


class InvalidArgument(EvaluationError):
    """An argument that the function refuses."""

    id = "invalid_argument"
    sqlstate = "22023"


class Interrupted(NoonmarkError):
    """The statement was ended from outside; it may be sent again."""

    id = "interrupted"
    sqlstate = "57000"


class QueryCanceled(Interrupted):
    """The client asked for the statement's end, or its time was up."""

    id = "query_canceled"
    sqlstate = "57014"


class TooManyConnections(Interrupted):
    """The server has as many clients as it takes."""

    id = "too_many_connections"
    sqlstate = "53300"


class SerializationFailure(NoonmarkError):
    """Others changed what a transaction had read before it could commit; nothing changed."""

    id = "serialization_failure"
    sqlstate = "40001"


class WriterError(NoonmarkError):
    """Another writer has the location."""

    id = "writer"
    sqlstate = "55006"


class LockHeld(WriterError):
    """Somebody else holds the write lock of the location."""

    id = "lock_held"
    sqlstate = "55006"


class Fenced(WriterError):
    """The write lock was taken over; nothing more that this writer does can be committed."""

    id = "fenced"
    sqlstate = "57P02"


class StorageError(NoonmarkError):
    """The outside world failed."""

    id = "storage"
    sqlstate = "58030"


class Determinate(StorageError):
    """The operation did not happen."""

    id = "determinate"
    sqlstate = "58030"


class Indeterminate(StorageError):
    """The operation may or may not have happened."""

    id = "indeterminate"
    sqlstate = "08007"


class StorageUnfit(StorageError):
    """The store cannot keep our promises: it ignores conditional puts, is full, or is read-only."""

    id = "storage_unfit"
    sqlstate = "53100"


class SourceError(NoonmarkError):
    """What a source reads from failed."""

    id = "source"
    sqlstate = "58030"


class SourceStalled(SourceError):
    """Upstream does not answer now; nothing is said about its data."""

    id = "source_stalled"
    sqlstate = "08006"


class SourceBroken(SourceError):
    """Upstream does not have, and never will have, the data that it promised."""

    id = "source_broken"
    sqlstate = "58030"


class IntegrityError(NoonmarkError):
    """Stored data is not what was written; restore it from a copy."""

    id = "integrity"
    sqlstate = "XX001"


class Corrupt(IntegrityError):
    """A stored object does not match its checksum."""

    id = "corrupt"
    sqlstate = "XX001"


class MissingObject(IntegrityError):
    """A stored object that the state refers to is gone."""

    id = "missing_object"
    sqlstate = "58P01"


class NewerFormat(IntegrityError):
    """The location was written by a newer version of Noonmark."""

    id = "newer_format"
    sqlstate = "0A000"
