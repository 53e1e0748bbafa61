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
    │   └── Unsupported           refused by name, because it is not built or never will be
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
