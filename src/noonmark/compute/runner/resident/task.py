"""What a resident does: works come over its line, and what they made goes back.

A work that nobody foresaw to fail ends the task: the driver learns of it by the line's end, and
has an ordinary job do the work, which tells why.

Where it runs: executors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from noonmark.compute.runner.job import TickResult, timed, trace_reader
from noonmark.compute.runner.resident.lines import Address, Line, LineLost
from noonmark.errors import NoonmarkError


@dataclass(frozen=True)
class ResidentTask:
    """The partition function of a resident's job.

    Attributes:
        address: where the driver listens.
        secret: what both ends know.
        number: which resident it is.
    """

    address: Address
    secret: bytes
    number: int

    def __call__(self, given: Iterable[object]) -> Iterator[bytes]:
        """Serve until the driver ends the line; gives nothing."""
        deque(given, maxlen=0)  # Spark uses a worker again whose input was read to its end
        traces = trace_reader()
        try:
            line = Line.to(self.address, self.secret, say=self.number)
            while True:
                works = line.hear()
                made: list[TickResult | NoonmarkError] = [timed(traces, *each) for each in works]
                line.send(made)
        except LineLost:  # the driver needs it no more, or is gone
            return iter(())
