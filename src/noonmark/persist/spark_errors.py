"""Errors of executors, as the errors that they were there.

An error that a task raises reaches the driver as text: Spark keeps the traceback and nothing else.
Inside `typed_errors` such an error becomes again what it was: its class, message, detail and hint.
Where it runs: driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from noonmark import errors

_RAISED = re.compile(
    r"noonmark\.errors\.(?P<name>\w+): (?P<message>[^\n]*)"
    r"(?:\n\s*DETAIL: (?P<detail>[^\n]*))?(?:\n\s*HINT: (?P<hint>[^\n]*))?"
)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raise what an executor raised, when that was one of our errors."""
    try:
        yield
    except PySparkException as error:
        typed = typed_error(str(error))
        if typed is None:
            raise
        raise typed from error


def typed_error(text: str) -> errors.NoonmarkError | None:
    """The last of our errors in the text of a traceback."""
    every = list(_RAISED.finditer(text))
    if not every:
        return None
    found = every[-1]
    kind = getattr(errors, found["name"], errors.NoonmarkError)
    typed: errors.NoonmarkError = kind(found["message"], detail=found["detail"], hint=found["hint"])
    return typed
