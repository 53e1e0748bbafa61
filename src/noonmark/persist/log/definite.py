"""Definite errors: a collection at a time is its rows, or an error.

A source whose upstream took a column away has no exact rows from then on. What it has instead is an
error, and that is as definite as rows are: it has a time, it is durable, and every reader at that
time gets it, in every process, for ever. A collection's errors are a list of changes,

    (t1, error), (t2, none), (t3, error) ...      t1 < t2 < t3

and ``error_at(t)`` is what the last change at or before t says; before the first one, none.

Law (answer): a read at t gives the rows at t if ``error_at(t)`` is none, and raises it otherwise.
A read of changes after s and up to t raises the first error of a time between them.
Law (definite): a change is made at a time that is not complete yet, as an update is: what was
answered once stays the answer.
Law (compaction): what becomes of changes before since alters ``error_at(t)`` for no t in since.

The rows stay beside the error, as they were known last. Maintenance goes on with them
(`Query.despite_error`), so that a view has its rows ready at the time at which the error is
retracted. Nobody else sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from noonmark.errors import DefiniteError


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """Why a collection has no rows: what a reader is told."""

    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""
    #: The collection that it began in, for those that only read it.
    origin: str = ""


class ErrorChange(msgspec.Struct, frozen=True, array_like=True):
    """From `time` on the collection is in error, or (None) has rows again."""

    time: int
    error: Failure | None


Errors: TypeAlias = tuple[ErrorChange, ...]


def change_at(errors: Errors, time: int) -> ErrorChange | None:
    """The last change at or before a time; None when there is none."""
    return next((each for each in reversed(errors) if each.time <= time), None)


def error_at(errors: Errors, time: int) -> Failure | None:
    """Why there are no rows at a time; None when there are."""
    found = change_at(errors, time)
    return None if found is None else found.error


def first_error(errors: Errors, first: int, last: int | None) -> ErrorChange | None:
    """The first error of a time t with ``first <= t <= last``; None as `last` for no end.

    The change that is returned may be older than `first`: it is the one that holds there.
    """
    if last is not None and last < first:
        return None
    begun = change_at(errors, first)
    if begun is not None and begun.error is not None:
        return begun
    within = (e for e in errors if e.time > first and (last is None or e.time <= last))
    return next((each for each in within if each.error is not None), None)


def answered_from(errors: Errors, time: int) -> int | None:
    """The first time at or after `time` that has rows; None when none is known."""
    if error_at(errors, time) is None:
        return time
    return next((e.time for e in errors if e.time > time and e.error is None), None)


def changed(errors: Errors, time: int, error: Failure | None) -> Errors:
    """The changes with one more, at or after the last one; the same where it says nothing new."""
    before = tuple(each for each in errors if each.time < time)
    if error_at(before, time) == error:
        return before
    return (*before, ErrorChange(time, error))


def compacted(errors: Errors, since: int | None) -> Errors:
    """The changes that still decide about a time at or beyond `since`; None: no time is left."""
    if since is None:
        return ()
    later = tuple(each for each in errors if each.time > since)
    begun = change_at(errors, since)
    return later if begun is None or begun.error is None else (begun, *later)


def combined(
    inputs: Sequence[tuple[str, Errors]], own: Errors, lower: int, upper: int | None
) -> list[ErrorChange]:
    """What a collection over some inputs takes over from them for ``[lower, upper)``.

    Law: at every time of the range it is in error iff one of them is; of several, the first one's.

    Args:
        inputs: their names and errors.
        own: its own errors before `lower`.
        lower: from when on.
        upper: the end; None for no end.
    """
    times = {lower}
    for _, errors in inputs:
        times |= {e.time for e in errors if e.time >= lower and (upper is None or e.time < upper)}
    made: list[ErrorChange] = []
    now = error_at(own, lower)
    for time in sorted(times):
        found = next(_failures(inputs, time), None)
        if found != now:
            made.append(ErrorChange(time, found))
            now = found
    return made


def _failures(inputs: Iterable[tuple[str, Errors]], time: int) -> Iterator[Failure]:
    for name, errors in inputs:
        found = error_at(errors, time)
        if found is not None:
            yield found if found.origin else msgspec.structs.replace(found, origin=name)


def refusal(name: str, change: ErrorChange, time: int | None = None) -> DefiniteError:
    """The error that a reader of a collection gets.

    Args:
        name: of the collection that is read.
        change: what holds there.
        time: the time that was asked for, if it is one.
    """
    error = change.error
    assert error is not None, "a collection with rows refuses nobody"
    since = f"It has no rows from time {change.time} on; AS OF before that still answers."
    if error.origin and error.origin != name:
        since = f'"{name}" reads "{error.origin}". {since}'
    return DefiniteError(
        error.message,
        detail=f"{error.detail} {since}" if error.detail else since,
        hint=error.hint or None,
        sqlstate=error.sqlstate,
        collection=name,
        origin=error.origin or name,
        time=change.time,
        as_of=time,
    )
