"""Errors of executors, as the errors that they were there.

An error that a task raises reaches the driver as text: Spark keeps the traceback and nothing else.
Inside `typed_errors` such an error becomes again what it was: its class, message, detail and hint.

Spark's own reader may come upon a damaged part before our check does, and fails in its own words.
When it names one of our parts, that is `MissingObject`, `Corrupt` or, if it is neither,
`Determinate`: nothing was read. Where it runs: driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from noonmark import errors

#: What Spark itself raises, on its own account or for an executor.
SPARK_ERRORS = (PySparkException, Py4JError)

_RAISED = re.compile(
    r"noonmark\.errors\.(?P<name>\w+): (?P<message>[^\n]*)"
    r"(?:\n\s*DETAIL: (?P<detail>[^\n]*))?(?:\n\s*HINT: (?P<hint>[^\n]*))?"
)
_PART = re.compile(r"(?:FAILED_READ_FILE|PATH_NOT_FOUND).*?(part/e\d+/c\d+/\w+\.parquet)", re.S)
_GONE = re.compile(r"PATH_NOT_FOUND|FILE_NOT_EXIST|FileNotFoundException")
_DAMAGED = re.compile(r"org\.apache\.parquet|not a Parquet file|thrift|zstd", re.IGNORECASE)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raise what an executor raised, when that was one of our errors or about our parts."""
    try:
        yield
    except SPARK_ERRORS as error:
        typed = typed_error(str(error))
        if typed is None:
            raise
        raise typed from error


def typed_error(text: str) -> errors.NoonmarkError | None:
    """The last of our errors in the text of a traceback, or what Spark says of a part."""
    raised = list(_RAISED.finditer(text))
    if raised:
        found = raised[-1]
        kind: type[errors.NoonmarkError] = getattr(errors, found["name"], errors.NoonmarkError)
        return kind(found["message"], detail=found["detail"], hint=found["hint"])
    part = _PART.search(text)
    if part is None:
        return None
    hint = "Restore the object from a copy."
    if _GONE.search(text):
        return errors.MissingObject(f'the part "{part[1]}" is gone', hint=hint, key=part[1])
    if _DAMAGED.search(text):
        return errors.Corrupt(f'the part "{part[1]}" cannot be decoded', hint=hint, key=part[1])
    return errors.Determinate(f'Spark could not read the part "{part[1]}"', key=part[1])
