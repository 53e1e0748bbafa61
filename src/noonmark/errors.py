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
    │   │   ├── NumberTooLarge    a number beyond the range of its type
    │   │   ├── InvalidDatetime   text that is no date, time or interval
    │   │   ├── FieldOverflow     a date or time with a field that is out of range
    │   │   ├── IntervalOverflow  an interval with a field that is out of range
    │   │   ├── InvalidOffset     an offset from UTC that no zone has
    │   │   └── InvalidBytes      digits that are not those of bytes; Untranslatable: rows.jsonb
    │   ├── CapabilityInvalid     a capability or hold that is unknown, dropped or expired
    │   ├── ReadOnly              a write through a read-only handle
    │   ├── Stopped               a call on a runtime that was stopped
    │   ├── ConfigError           an option, URL or environment that cannot work
    │   ├── Unsupported           refused by name, because it is not built or never will be
    │   ├── ProtocolViolation     a message that the client may not send, or not now
    │   ├── NotAuthorized         a user who is not who they say, or may not come in
    │   │   └── InvalidPassword   a password that is not the user's
    │   ├── UnknownStatement      no prepared statement of that name
    │   ├── StatementTaken        a prepared statement of that name exists
    │   ├── UnknownPortal         no portal or cursor of that name
    │   ├── PortalTaken           a portal or cursor of that name exists
    │   ├── CopyFailed            the client gave up a COPY
    │   ├── BadCopyData           data of a COPY that is not rows of its columns
    │   ├── UndefinedObject       no role, connection, secret or setting of that name
    │   │   └── UndefinedSchema   no schema of that name
    │   ├── DuplicateObject       a role or the like of that name exists; a schema: see run.ddl
    │   ├── WrongObjectType       a statement for another kind of object
    │   ├── DependentObjects      a drop of what others need
    │   ├── InsufficientPrivilege  a right that the role does not have
    │   ├── InFailedTransaction   a statement in a transaction that an error ended
    │   ├── NoActiveTransaction   a statement that only means something inside of a transaction
    │   ├── InTransaction         a statement that cannot be part of a transaction
    │   ├── UnknownSavepoint      no savepoint of that name in the transaction
    │   ├── NotNullViolation      NULL for a column that takes none
    │   ├── TooComplex            a statement that is nested deeper than is planned
    │   ├── StringTooLong         text that is longer than its column takes
    │   ├── UniqueViolation       a second row for a key
    │   └── SqlError              a statement that means nothing; its position says where
    │       ├── InvalidSyntax     text that is not SQL
    │       ├── UndefinedTable    a name in FROM that nothing has
    │       ├── UndefinedColumn   a column that no table in FROM has
    │       ├── AmbiguousColumn   a column that several tables in FROM have
    │       ├── DuplicateAlias    a table name given twice in one FROM
    │       ├── UndefinedParameter  a $1 where there are no parameters
    │       ├── UndefinedFunction  no function or operator of that name takes these arguments
    │       ├── DatatypeMismatch  an expression of the wrong type
    │       ├── CannotCast        a cast between types that have none
    │       ├── GroupingError     a column outside GROUP BY, or an aggregate where none may be
    │       ├── WindowingError    a window function where none may be
    │       └── InvalidReference  a position, a key or a column that is not there to be named
    ├── EvaluationError           a query that has no answer on the rows of that time: it is data
    │   ├── DivisionByZero        a division by zero
    │   ├── OutOfRange            a number outside the range of its type
    │   ├── DatetimeOutOfRange    a date or time outside the range of its type
    │   ├── NoSuchNumber          NaN or an infinity where only numbers are
    │   ├── InvalidText           text that the type it is cast to cannot read
    │   ├── InvalidDatetimeText   text that is no date, time or interval
    │   ├── InvalidOffsetText     an offset from UTC that no zone has
    │   ├── IntervalOutOfRange    an interval outside the range of its type
    │   ├── TooManyRows           a subquery used as an expression gave more than one row
    │   └── InvalidArgument       an argument that the function refuses
    │       ├── InvalidPattern    a regular expression that is none
    │       ├── InvalidEscape     a LIKE pattern that ends with its escape character
    │       ├── InvalidLogarithm  a number that has no logarithm
    │       └── NegativeLength    a part of a text with less than no characters
    │           (and InvalidBuckets, NullRefused, UntranslatableText: see sql.functions.errors)
    ├── DefiniteError             a collection that has no rows at that time, and why: it is data
    ├── Interrupted               the statement was ended from outside; it may be sent again
    │   ├── QueryCanceled         the client asked for it, or its time was up
    │   ├── TooManyConnections    the server has as many clients as it takes
    │   └── OutOfMemory, WorkerLost, ProgramLimitExceeded    see adapter.worker.errors
    ├── SerializationFailure      others changed what a transaction had read: run it again
    │   └── Overtaken             columns were added between planning and reading: plan it again
    ├── WriterError               another writer has the location
    │   ├── LockHeld              somebody else holds the write lock
    │   └── Fenced                the lock was taken over; this writer can commit nothing more
    ├── StorageError              the outside world failed
    │   ├── Determinate           the operation did not happen: retry it
    │   │   └── BehindFailure     one before it on the same collection failed: retry both
    │   ├── Indeterminate         the operation may have happened: read back before you retry
    │   └── StorageUnfit          the store is full, read-only or ignores conditional puts
    ├── SourceError               upstream of a source failed
    │   ├── SourceStalled         it may answer later: wait, and ask again
    │   │   └── RefusedHere       the operator does not let it connect there, or read that
    │   └── SourceBroken          it will never give this data: definite, so it is written as data
    ├── IntegrityError            restore from a copy; nothing is guessed
    │   ├── Corrupt               a stored object does not match its checksum
    │   ├── MissingObject         a stored object that the state refers to is gone
    │   └── NewerFormat           the location was written by a newer version
    └── InternalError             a defect of ours: its number finds the traceback in the log

Every class has a stable ``id`` and a PostgreSQL ``SQLSTATE``; every instance has a message, typed
``fields``, and where they help a ``detail`` and a ``hint``.
"""

from __future__ import annotations

from typing import Any

from noonmark.error_root import NoonmarkError as NoonmarkError  # noqa: PLC0414 - one tree for users


class UsageError(NoonmarkError, id="usage", sqlstate="22023"):
    """Fix the call; nothing changed."""


class BelowUpper(UsageError, id="below_upper", sqlstate="22008"):
    """A write at a time that the collection has already declared complete."""


class NotBelowFrontier(UsageError, id="not_below_frontier", sqlstate="22008"):
    """An update at or beyond the frontier that the same call declares complete."""


class FrontierRegression(UsageError, id="frontier_regression", sqlstate="22008"):
    """A frontier was asked to move backwards."""


class BeforeSince(UsageError, id="before_since", sqlstate="22008"):
    """A read at a time whose history has been compacted away."""


class NotYetComplete(UsageError, id="not_yet_complete", sqlstate="55000"):
    """A read that was told not to wait, at a time that is still open."""


class UnknownCollection(UsageError, id="unknown_collection", sqlstate="42P01"):
    """No collection has that name or id."""


class NameTaken(UsageError, id="name_taken", sqlstate="42P07"):
    """A collection of that name exists already."""


class SchemaMismatch(UsageError, id="schema_mismatch", sqlstate="42804"):
    """Rows that do not fit the collection, or a schema change that would break old data."""


class InvalidValue(UsageError, id="invalid_value", sqlstate="22P02"):
    """A value that its type cannot hold."""


class NumberTooLarge(InvalidValue, id="number_too_large", sqlstate="22003"):
    """A number is beyond the range of its type."""


class InvalidDatetime(InvalidValue, id="invalid_datetime", sqlstate="22007"):
    """Text is no date, time or interval."""


class FieldOverflow(InvalidValue, id="field_overflow", sqlstate="22008"):
    """A field of a date or time is out of range."""


class IntervalOverflow(InvalidValue, id="interval_overflow", sqlstate="22015"):
    """A field of an interval is out of range."""


class InvalidOffset(InvalidValue, id="invalid_offset", sqlstate="22009"):
    """No zone has such an offset from UTC."""


class InvalidBytes(InvalidValue, id="invalid_bytes", sqlstate="22023"):
    """Text is no bytea: its digits are not those of bytes."""


class CapabilityInvalid(UsageError, id="capability_invalid", sqlstate="55000"):
    """A capability or hold that is unknown, dropped or expired."""


class ReadOnly(UsageError, id="read_only", sqlstate="25006"):
    """A write through a handle that can only read."""


class Stopped(UsageError, id="stopped", sqlstate="57P01"):
    """A call on a runtime that was stopped."""


class ConfigError(UsageError, id="config", sqlstate="F0000"):
    """An option, URL or environment that cannot work."""


class Unsupported(UsageError, id="unsupported", sqlstate="0A000"):
    """Refused by name: not built yet, or refused on purpose."""


class ProtocolViolation(UsageError, id="protocol_violation", sqlstate="08P01"):
    """The client sent a message that it may not send, or not now."""


class NotAuthorized(UsageError, id="not_authorized", sqlstate="28000"):
    """The user is not who they say, or may not come in."""


class InvalidPassword(NotAuthorized, id="invalid_password", sqlstate="28P01"):
    """The password is not the user's."""


class UnknownStatement(UsageError, id="unknown_statement", sqlstate="26000"):
    """No prepared statement has that name."""


class StatementTaken(UsageError, id="statement_taken", sqlstate="42P05"):
    """A prepared statement of that name exists already."""


class UnknownPortal(UsageError, id="unknown_portal", sqlstate="34000"):
    """No portal or cursor has that name."""


class PortalTaken(UsageError, id="portal_taken", sqlstate="42P03"):
    """A portal or cursor of that name exists already."""


class CopyFailed(UsageError, id="copy_failed", sqlstate="57014"):
    """The client gave up a COPY; nothing of it is there."""


class BadCopyData(UsageError, id="bad_copy_data", sqlstate="22P04"):
    """The data of a COPY are not rows of its columns."""


class UndefinedObject(UsageError, id="undefined_object", sqlstate="42704"):
    """Nothing of that kind has the name: a role, a connection, a secret, a setting, a type."""


class UndefinedSchema(UndefinedObject, id="undefined_schema", sqlstate="3F000"):
    """There is no schema of that name."""


class DuplicateObject(UsageError, id="duplicate_object", sqlstate="42710"):
    """A role, a schema or another thing that is no collection has the name already."""


class WrongObjectType(UsageError, id="wrong_object_type", sqlstate="42809"):
    """The object exists and is of another kind than the statement is for."""


class DependentObjects(UsageError, id="dependent_objects", sqlstate="2BP01"):
    """Others need what was to be dropped; the detail names them."""


class InsufficientPrivilege(UsageError, id="insufficient_privilege", sqlstate="42501"):
    """The role may not do that."""


class InFailedTransaction(UsageError, id="in_failed_transaction", sqlstate="25P02"):
    """An error ended the transaction; only its end is taken now."""


class NoActiveTransaction(UsageError, id="no_active_transaction", sqlstate="25P01"):
    """The statement only means something inside of a transaction."""


class InTransaction(UsageError, id="in_transaction", sqlstate="25001"):
    """The statement cannot be part of a transaction: it could not be undone."""


class UnknownSavepoint(UsageError, id="unknown_savepoint", sqlstate="3B001"):
    """No savepoint of that name in the transaction."""


class NotNullViolation(UsageError, id="not_null_violation", sqlstate="23502"):
    """NULL for a column that takes none."""


class TooComplex(UsageError, id="too_complex", sqlstate="54001"):
    """A statement is nested deeper than is planned and evaluated."""

    @classmethod
    def of_statement(cls) -> TooComplex:
        """The refusal of the statement under way."""
        return cls("stack depth limit exceeded", hint="Nest below 2,000 levels, or make views.")


class StringTooLong(UsageError, id="string_too_long", sqlstate="22001"):
    """Text that is longer than its column takes; nothing is cut off in silence."""


class UniqueViolation(UsageError, id="unique_violation", sqlstate="23505"):
    """A second row for a key."""


class SqlError(UsageError, id="sql", sqlstate="42000"):
    """A statement that means nothing; ``position`` is where, in characters from 1."""


class InvalidSyntax(SqlError, id="invalid_syntax", sqlstate="42601"):
    """The text is not SQL."""


class UndefinedTable(SqlError, id="undefined_table", sqlstate="42P01"):
    """Nothing has the name that FROM asks for."""


class UndefinedColumn(SqlError, id="undefined_column", sqlstate="42703"):
    """No table in FROM has the column."""


class AmbiguousColumn(SqlError, id="ambiguous_column", sqlstate="42702"):
    """Several tables in FROM have the column."""


class DuplicateAlias(SqlError, id="duplicate_alias", sqlstate="42712"):
    """Two tables of one FROM have the same name."""


class UndefinedParameter(SqlError, id="undefined_parameter", sqlstate="42P02"):
    """A parameter where the statement can have none, or not that many."""


class UndefinedFunction(SqlError, id="undefined_function", sqlstate="42883"):
    """No function or operator of that name takes these arguments."""


class DatatypeMismatch(SqlError, id="datatype_mismatch", sqlstate="42804"):
    """An expression is not of the type that its place asks for."""


class CannotCast(SqlError, id="cannot_cast", sqlstate="42846"):
    """There is no cast from the one type to the other."""


class GroupingError(SqlError, id="grouping", sqlstate="42803"):
    """A column is neither grouped nor aggregated, or an aggregate stands where none may."""


class WindowingError(SqlError, id="windowing", sqlstate="42P20"):
    """A window function stands where none may."""


class InvalidReference(SqlError, id="invalid_reference", sqlstate="42P10"):
    """A position outside of the select list, a key that is none, a column that no COPY takes."""


class EvaluationError(NoonmarkError, id="evaluation", sqlstate="22000"):
    """A query has no answer on the rows of that time; when the bad row is gone it has one again."""


class DivisionByZero(EvaluationError, id="division_by_zero", sqlstate="22012"):
    """A division by zero."""


class OutOfRange(EvaluationError, id="out_of_range", sqlstate="22003"):
    """A number outside the range of its type."""


class DatetimeOutOfRange(EvaluationError, id="datetime_out_of_range", sqlstate="22008"):
    """A date, time or interval outside the range of its type."""


class NoSuchNumber(EvaluationError, id="no_such_number", sqlstate="0A000"):
    """NaN or an infinity where only numbers are."""


class InvalidText(EvaluationError, id="invalid_text", sqlstate="22P02"):
    """Text that the type it is cast to cannot read."""


class InvalidDatetimeText(EvaluationError, id="invalid_datetime_text", sqlstate="22007"):
    """Text is no date, time or interval."""


class InvalidOffsetText(EvaluationError, id="invalid_offset_text", sqlstate="22009"):
    """No zone has such an offset from UTC."""


class IntervalOutOfRange(EvaluationError, id="interval_out_of_range", sqlstate="22015"):
    """An interval outside the range of its type."""


class TooManyRows(EvaluationError, id="too_many_rows", sqlstate="21000"):
    """A subquery used as an expression gave more than one row."""


class InvalidArgument(EvaluationError, id="invalid_argument", sqlstate="22023"):
    """An argument that the function refuses."""


class InvalidPattern(InvalidArgument, id="invalid_pattern", sqlstate="2201B"):
    """A regular expression that is none."""


class InvalidEscape(InvalidArgument, id="invalid_escape", sqlstate="22025"):
    """A LIKE pattern that ends with its escape character."""


class InvalidLogarithm(InvalidArgument, id="invalid_logarithm", sqlstate="2201E"):
    """A number that has no logarithm."""


class NegativeLength(InvalidArgument, id="negative_length", sqlstate="22011"):
    """A part of a text with less than no characters."""


class DefiniteError(NoonmarkError, id="definite_error", sqlstate="55000"):
    """A collection has no rows at the time that was asked for, but an error, with its SQLSTATE."""

    def __init__(self, message: str, *, sqlstate: str = "55000", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.sqlstate = sqlstate  # type: ignore[misc]
        self.fields["sqlstate"] = sqlstate


class Interrupted(NoonmarkError, id="interrupted", sqlstate="57000"):
    """The statement was ended from outside; it may be sent again."""


class QueryCanceled(Interrupted, id="query_canceled", sqlstate="57014"):
    """The client asked for the statement's end, or its time was up."""


class TooManyConnections(Interrupted, id="too_many_connections", sqlstate="53300"):
    """The server has as many clients as it takes."""


class SerializationFailure(NoonmarkError, id="serialization_failure", sqlstate="40001"):
    """Others changed what a transaction had read before it could commit; nothing changed."""


class Overtaken(SerializationFailure, id="overtaken"):
    """Columns were added between planning a statement and reading its table; nothing changed."""


class WriterError(NoonmarkError, id="writer", sqlstate="55006"):
    """Another writer has the location."""


class LockHeld(WriterError, id="lock_held", sqlstate="55006"):
    """Somebody else holds the write lock of the location."""


class Fenced(WriterError, id="fenced", sqlstate="57P02"):
    """The write lock was taken over; nothing more that this writer does can be committed."""


class StorageError(NoonmarkError, id="storage", sqlstate="58030"):
    """The outside world failed."""


class Determinate(StorageError, id="determinate", sqlstate="58030"):
    """The operation did not happen."""


class BehindFailure(Determinate, id="behind_failure", sqlstate="58030"):
    """The operation was not tried: one before it on the same collection failed."""


class Indeterminate(StorageError, id="indeterminate", sqlstate="08007"):
    """The operation may or may not have happened."""


class StorageUnfit(StorageError, id="storage_unfit", sqlstate="53100"):
    """The store cannot keep our promises: it ignores conditional puts, is full, or is read-only."""


class SourceError(NoonmarkError, id="source", sqlstate="58030"):
    """What a source reads from failed."""


class SourceStalled(SourceError, id="source_stalled", sqlstate="08006"):
    """Upstream does not answer now; nothing is said about its data."""


class RefusedHere(SourceStalled, id="refused_here", sqlstate="42501"):
    """The operator of this server does not let it connect there, or read that file."""


class SourceBroken(SourceError, id="source_broken", sqlstate="58030"):
    """Upstream does not have, and never will have, the data that it promised."""


class IntegrityError(NoonmarkError, id="integrity", sqlstate="XX001"):
    """Stored data is not what was written; restore it from a copy."""


class Corrupt(IntegrityError, id="corrupt", sqlstate="XX001"):
    """A stored object does not match its checksum."""


class MissingObject(IntegrityError, id="missing_object", sqlstate="58P01"):
    """A stored object that the state refers to is gone."""


class NewerFormat(IntegrityError, id="newer_format", sqlstate="0A000"):
    """The location was written by a newer version of Noonmark."""


class InternalError(NoonmarkError, id="internal", sqlstate="XX000"):
    """Something failed in a way that nobody foresaw; made by `noonmark.defect.report`."""
