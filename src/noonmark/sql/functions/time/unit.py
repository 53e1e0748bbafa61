"""Units of time, by every name that PostgreSQL knows them by.

A name is told by its first ten letters (PostgreSQL's `deltatktbl`, `datetktbl`). A name that means
something, of which a type has no field, is *not supported*; any other name is *not recognized*.
"""

from __future__ import annotations

from noonmark.errors import EvaluationError, InvalidArgument
from noonmark.sql.functions.errors import NotHeldHere

_LETTERS = 10
#: Units of a length of time.
_LENGTHS = {
    "century": "c cent centuries century",
    "day": "d day days",
    "decade": "dec decade decades decs",
    "hour": "h hour hours hr hrs",
    "microseconds": "microsecond us usec usecond useconds usecs",
    "millennium": "mil mils millennia millennium",
    "milliseconds": "millisecond ms msec msecond mseconds msecs",
    "minute": "m min mins minute minutes",
    "month": "mon mons month months",
    "quarter": "qtr quarter",
    "second": "s sec second seconds secs",
    "timezone": "timezone",
    "timezone_hour": "timezone_hour",
    "timezone_minute": "timezone_minute",
    "week": "w week weeks",
    "year": "y year years yr yrs",
}
#: Fields of a point in time.
_POINTS = {
    "dow": "dow", "doy": "doy", "isodow": "isodow", "isoyear": "isoyear", "epoch": "epoch",
    "julian": "j jd julian", "minute": "mm",
}  # fmt: skip
#: Points in time themselves: of times of a day and of intervals they are not even recognized.
_WORDS = {
    each: each
    for each in ("now", "today", "tomorrow", "yesterday", "infinity", "-infinity", "allballs")
}


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {each[:_LETTERS]: unit for unit, names in table.items() for each in names.split()}


_LENGTH_NAMES = _by_name(_LENGTHS)
_NAMES = {**_WORDS, **_by_name(_POINTS), **_LENGTH_NAMES}


def unit_of_length(text: str) -> str | None:
    """The one name of a unit of a length of time; None if it is no such."""
    return _LENGTH_NAMES.get(text.lower()[:_LETTERS])


def unit_name(text: str) -> str | None:
    """The one name of a unit or a field; None if it is no such."""
    return _NAMES.get(text.lower()[:_LETTERS])


def no_unit(text: str, name: str | None, kind: str) -> EvaluationError:
    """The error of a type that has no such field."""
    if name is None or (name in _WORDS and kind.startswith(("time without", "interval"))):
        return InvalidArgument(f'unit "{text}" not recognized for type {kind}')
    return NotHeldHere(f'unit "{text}" not supported for type {kind}')
