"""FROM POSTGRES: the tables of a publication, each change at its transaction's commit.

`describe` says what upstream has, `source` is the source itself, `stream` reads a slot, `snapshot`
reads tables as of one moment, `copytext` is the one text form that rows of both come in. Why it is
built this way: ``docs/design/20261115-postgres-source.md``.

Names are imported when they are first asked for: a server starts without PostgreSQL's client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noonmark.source.impl.postgres.describe import Table, TableColumn
    from noonmark.source.impl.postgres.setup import (
        create,
        drop_slot_later,
        drop_slot_now,
        unmake,
        validate,
    )
    from noonmark.source.impl.postgres.source import Postgres

_PLACES = {
    "Postgres": "source",
    "Table": "describe",
    "TableColumn": "describe",
    "create": "setup",
    "drop_slot_later": "setup",
    "drop_slot_now": "setup",
    "unmake": "setup",
    "validate": "setup",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


__all__ = [
    "Postgres",
    "Table",
    "TableColumn",
    "create",
    "drop_slot_later",
    "drop_slot_now",
    "unmake",
    "validate",
]
