"""FROM POSTGRES: the tables of a publication, each change at its transaction's commit.

`describe` says what upstream has, `source` is the source itself, `stream` reads a slot, `snapshot`
reads tables as of one moment, `copytext` is the one text form that rows of both come in. Why it is
built this way: ``docs/design/20261115-postgres-source.md``.
"""

from noonmark.source.impl.postgres.describe import Table, TableColumn
from noonmark.source.impl.postgres.setup import create, drop_slot, validate
from noonmark.source.impl.postgres.source import Postgres

__all__ = ["Postgres", "Table", "TableColumn", "create", "drop_slot", "validate"]
