"""Errors of statements that use more than they may; part of the tree of `noonmark.errors`."""

from __future__ import annotations

from noonmark.errors import Interrupted


class OutOfMemory(Interrupted, id="out_of_memory", sqlstate="53200"):
    """The statement needs more memory than it may have."""

    @classmethod
    def of_statement(cls, memory_bytes: int) -> OutOfMemory:
        """One that goes beyond statement_worker_memory."""
        return cls(
            "out of memory",
            detail="The statement needs more than statement_worker_memory, "
            f"{memory_bytes >> 20}MB.",
            hint="Ask for less at once, or let the server have a larger statement_worker_memory.",
        )


class WorkerLost(Interrupted, id="worker_lost", sqlstate="57P01"):
    """The process that worked on the statement is gone; others are not affected."""


class ProgramLimitExceeded(Interrupted, id="program_limit", sqlstate="54000"):
    """A statement beyond a stated limit; the message names it."""
