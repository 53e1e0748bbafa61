"""Settings and transactions: ROLLBACK takes back what SET did, COMMIT what SET LOCAL did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.adapter.session.transaction import OpenTransaction

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession, Transaction


def current_settings(session: AdapterSession) -> None:
    """A transaction begins: note the settings."""
    if isinstance(session.transaction, OpenTransaction):
        session.transaction.settings = session.variables.noted()


def set_local(session: AdapterSession, name: str, value: str) -> None:
    """Change a setting, which was checked, up to the end of the transaction."""
    assert isinstance(session.transaction, OpenTransaction), "SET LOCAL is for a transaction"
    session.transaction.local_settings.setdefault(name, session.variables.get(name))
    session.set_variable(name, value)


def undo_settings(session: AdapterSession, transaction: Transaction) -> None:
    """A transaction is undone: so are its settings."""
    if isinstance(transaction, OpenTransaction) and transaction.settings is not None:
        _restore(session, transaction.settings)


def end_local_settings(session: AdapterSession, transaction: Transaction) -> None:
    """A transaction is committed: what it set for itself alone ends."""
    if isinstance(transaction, OpenTransaction) and transaction.local_settings:
        kept = session.variables.noted()
        for name, before in transaction.local_settings.items():
            if before is None:
                kept.pop(name, None)
            else:
                kept[name] = before
        _restore(session, kept)


def _restore(session: AdapterSession, settings: dict[str, str]) -> None:
    if session.variables.get("search_path") != settings.get("search_path"):
        session.forget_plans()  # names mean something else now
    session.variables.go_back(settings)
