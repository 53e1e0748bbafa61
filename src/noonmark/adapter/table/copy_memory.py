"""The rows of COPYs that have not ended yet, together: what they take is bounded.

COPY FROM is one commit, so that what a client has sent is kept until it says that this was all.

Where it runs: the loop.
"""

from __future__ import annotations

from noonmark.adapter.worker.errors import OutOfMemory


class CopyMemory:
    """What all COPYs of a server may have in memory, in MB."""

    def __init__(self, most_mb: int) -> None:
        self._most_mb = most_mb
        self.taken = 0

    def take(self, size: int) -> None:
        """Count so many bytes more.

        Raises:
            OutOfMemory: that is too much; nothing was counted.
        """
        if self.taken + size > self._most_mb << 20:
            raise OutOfMemory(
                f"the rows of COPY take more than {self._most_mb} MB of memory",
                detail="That is copy_memory, for all that is copied at the same time.",
                hint="Copy in several pieces: each is one commit.",
            )
        self.taken += size

    def free(self, size: int) -> None:
        """A COPY that had so many bytes has ended."""
        self.taken -= size
