"""What sessions say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from noonmark.sql.statement.base import Statement


@dataclass(frozen=True)
class Notify(Statement):
    """LISTEN, UNLISTEN or NOTIFY; `channel` None: every one of the session's."""

    what: Literal["listen", "unlisten", "notify"]
    channel: str | None
    payload: str = ""
