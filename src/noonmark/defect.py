"""Defects: an exception that nobody foresaw becomes one line of log and an error without insides.

Law: what a user is told of a defect is its number alone. The exception, its text and its traceback
stand in the log beside the same number, and nowhere else: they may show code, paths or values that
belong to somebody else.
"""

from __future__ import annotations

import logging

from noonmark.clock import SYSTEM
from noonmark.errors import InternalError

LOG = logging.getLogger("noonmark.defect")
#: The last characters of a fresh id are its entropy.
_NUMBER_LENGTH = 12


def report(error: BaseException, doing: str) -> InternalError:
    """Log a defect with its traceback; returns what to tell those who wait for it.

    Args:
        error: the exception.
        doing: what failed, for the log: "a statement", "the committer of tables".
    """
    number = SYSTEM.fresh_id()[-_NUMBER_LENGTH:]
    LOG.error("internal error %s: %s failed unexpectedly", number, doing, exc_info=error)
    return InternalError(
        f"internal error {number}",
        hint="This is a defect of the server. Its log has the details under this number.",
        number=number,
    )
