"""A location as it will be: what commands that are not committed yet lead to.

For who puts several things into one commit, of which later ones count on earlier ones.
"""

from __future__ import annotations

from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.machine import apply
from noonmark.persist.log.state import State


class PendingClient(Client):
    """A client of a location that is in another state."""

    def __init__(self, client: Client, state: State) -> None:
        self.__dict__.update(vars(client))
        self._pending = state

    @property
    def state(self) -> State:
        """The state after those commands."""
        return self._pending


def with_pending(client: Client, commands: c.Transaction) -> Client:
    """The location after some commands.

    Raises:
        NoonmarkError: they would be refused.
    """
    if not commands:
        return client
    return PendingClient(client, apply(client.state, commands, client.clock.now_ms()))
