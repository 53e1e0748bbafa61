"""LISTEN, UNLISTEN and NOTIFY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Done, Outcome
from noonmark.adapter.session.channels import Announcement, announce
from noonmark.adapter.statement.handler import Handlers
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_notify(session: AdapterSession, statement: st.Notify, _: Sequence[Any]) -> Outcome:
    """What is said is told at COMMIT."""
    announce(session, Announcement(statement.what, statement.channel, statement.payload))
    return Done(statement.what.upper())


HANDLERS: Handlers = {st.Notify: run_notify}
