"""The timeline as a replica has it: that of the writer, asked for by those who need it."""

from __future__ import annotations

from noonmark.adapter.replica.questions import Applied, Read, ask
from noonmark.adapter.replica.refused import no_writes
from noonmark.adapter.timestamp.oracle import Times
from noonmark.errors import Unsupported
from noonmark.persist.client import Client
from noonmark.persist.question import NotAnswered


class AskedTimes(Times):
    """See the module."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bound(self, *, strict: bool) -> int:
        """The oracle's time for who must not be before it; for others the clock will do."""
        return await self.read_ts() if strict else self._client.clock.now_ms()

    def read_without_waiting(self) -> int | None:
        """Never: another process knows it."""
        return None

    async def read_ts(self) -> int:
        """A time for a strict read.

        Raises:
            Unsupported: the writer cannot be asked.
        """
        try:
            return await ask(self._client, Read())
        except NotAnswered as error:
            raise _not_strict(error) from error

    async def apply_write(self, time: int) -> None:
        """A strict read is answered at `time`."""
        try:
            await ask(self._client, Applied(time))
        except NotAnswered as error:
            raise _not_strict(error) from error

    async def write_ts(self) -> int:
        """There are no writes here."""
        raise no_writes("a write")

    async def close(self) -> None:
        """There is nothing to let go of."""


class NoOracle:
    """`oracle.contract.TimestampOracle` of who writes nothing."""

    def write_ts(self) -> int:
        """There are no writes here."""
        raise no_writes("a write")

    def read_ts(self) -> int:
        """Nobody asks."""
        raise no_writes("a write")

    def apply_write(self, time: int) -> None:
        """There are no writes here."""
        raise no_writes(f"a write at {time}")

    def close(self) -> None:
        """There is nothing to let go of."""


def _not_strict(error: NotAnswered) -> Unsupported:
    why = f"{error.message[0].upper()}{error.message[1:]}."
    return Unsupported(
        "a strict serializable read needs the writer's timeline, and the writer cannot be asked",
        detail=why if error.detail is None else f"{why} {error.detail}",
        hint="SET transaction_isolation = 'serializable', or connect to the writer.",
    )
