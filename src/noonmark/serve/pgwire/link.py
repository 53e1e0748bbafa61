"""The line to one client, as the protocol sees it: frames come in, bytes go out.

`wire.Wire` is one over a socket; the tests have one in memory. What is sent is gathered and
written at once, so that a short answer is one packet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from noonmark.errors import NoonmarkError
from noonmark.serve.pgwire.frames import Frames


class Lost(Exception):
    """The client is gone: there is nobody to tell."""


class Link(Protocol):
    """One client's line."""

    frames: Frames
    #: Called where the client has taken what it was slow to take.
    drained: Callable[[], None] | None

    @property
    def peer(self) -> str:
        """Where the client is: an address."""

    @property
    def local(self) -> bool:
        """Whether the client is on this machine."""

    @property
    def can_encrypt(self) -> bool:
        """Whether the server has a certificate, and the line is not encrypted yet."""

    async def encrypt(self) -> None:
        """Go on under TLS."""

    async def more(self, fast_path: Callable[[], bool] | None = None) -> None:
        """Wait until bytes were fed to `frames`, and not all of their frames answered.

        Args:
            fast_path: called where bytes came, without waiting for this task's turn; it answers
                frames, and returns whether all were answered.

        Raises:
            Lost: the client is gone.
            Stopped: the server stops.
        """

    @property
    def congested(self) -> bool:
        """Whether the client takes what it is sent slower than it comes: `drain` would wait."""

    def end(self, why: NoonmarkError) -> None:
        """Make `more` raise this, now or when it is next called."""

    def send(self, data: bytes) -> None:
        """Gather bytes for the client."""

    def flush(self) -> None:
        """Write what was gathered."""

    async def drain(self) -> None:
        """Write what was gathered; wait while the client takes it slower than it comes.

        Others get their turn in any case.

        Raises:
            Lost: the client is gone.
        """
