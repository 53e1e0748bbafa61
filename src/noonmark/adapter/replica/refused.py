"""What a read-only server does not do: whatever writes, and what only the writer knows."""

from __future__ import annotations

from noonmark.adapter.statement.handler import shown
from noonmark.errors import ReadOnly
from noonmark.sql.statement import statement as st

HINT = "Connect to the server that writes to this location."


def no_writes(what: str) -> ReadOnly:
    """The refusal of a statement, by its name."""
    return ReadOnly(f"cannot execute {what} in a read-only server", hint=HINT)


def check(statement: st.Statement) -> None:
    """Let reads through.

    Raises:
        ReadOnly: it is none.
    """
    from noonmark.adapter.statement.handlers import READS  # door: they are about statements

    if isinstance(statement, st.Copy) and statement.direction == "from":
        raise no_writes("COPY FROM")
    if isinstance(statement, st.Explain) and statement.stage == "materialized view":
        raise no_writes("EXPLAIN MATERIALIZED VIEW")
    if type(statement) not in READS and not isinstance(statement, st.Empty):
        raise no_writes(shown(statement))
