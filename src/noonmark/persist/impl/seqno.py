"""The numbers of a log, checked alike by every Consensus.

Law: entries are 1, 2, 3, ... without holes. A call that would break it is a `UsageError`: it says
that the caller's own account of the log is wrong, and nothing was changed.
"""

from __future__ import annotations

from noonmark.errors import MissingObject, UsageError


def check_append(seqno: int, head: int | None = None) -> int:
    """The number itself, when it may be appended: at least 1 and, if known, at most head + 1."""
    if seqno < 1 or (head is not None and seqno > head + 1):
        raise UsageError(
            f"entry {seqno} would leave a hole in the log",
            detail=None if head is None else f"The newest entry is {head}.",
            seqno=seqno,
        )
    return seqno


def check_read(start: int) -> None:
    """Entries are numbered from 1."""
    if start < 1:
        raise UsageError(f"a log has no entry {start}", seqno=start)


def check_truncate(below: int, head: int) -> None:
    """Only what has been appended can be forgotten."""
    if below > head + 1:
        raise UsageError(
            f"cannot truncate below {below}", detail=f"The newest entry is {head}.", seqno=below
        )


def truncated(start: int, floor: int, where: str) -> MissingObject:
    """The error of a read that starts below the floor."""
    return MissingObject(
        f"entry {start} of the log has been truncated",
        detail=f"The oldest entry kept is number {floor} or later, in {where}.",
        seqno=start,
        floor=floor,
    )
