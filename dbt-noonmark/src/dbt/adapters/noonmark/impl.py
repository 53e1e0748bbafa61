"""The adapter: what the macros cannot do in Jinja."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.noonmark.connections import NoonmarkConnectionManager
from dbt.adapters.noonmark.text import body, normal
from dbt.adapters.postgres import PostgresAdapter
from dbt.adapters.postgres.impl import PostgresConfig

_RETAIN = re.compile(r"RETAIN HISTORY FOR '(\d+)ms'")


@dataclass
class NoonmarkConfig(PostgresConfig):
    """What a model may be configured with, beyond what dbt-postgres knows."""

    retain_history: str | None = None
    maintenance: str | None = None


class NoonmarkAdapter(PostgresAdapter):
    """dbt-postgres, with turns, statements that stand alone, and texts that are compared."""

    ConnectionManager = NoonmarkConnectionManager
    AdapterSpecificConfigs = NoonmarkConfig

    connections: NoonmarkConnectionManager

    @available
    def take_turn(self) -> str:
        """See `NoonmarkConnectionManager.take_turn`."""
        self.connections.take_turn()
        return ""

    @available
    def end_turn(self) -> str:
        """Commit, and end the turn: also where nothing was changed."""
        self.connections.end_transaction()
        self.connections.give_turn()
        return ""

    @available.parse(lambda *_, **__: "")
    def run_alone(self, sql: str) -> str:
        """Run a statement that no transaction can include; what the server said."""
        return str(self.connections.run_alone(sql))

    @available.parse(lambda *_, **__: "")
    def tried(self, statements: list[str]) -> str:
        """Run statements, all or none; the error, or nothing."""
        return self.connections.tried(statements)

    @available
    def same_query(self, one: str, other: str) -> bool:
        """Whether two queries differ in nothing but comments and spaces."""
        return normal(one) == normal(other)

    @available
    def same_body(self, kept: str, wanted: str) -> bool:
        """Whether CREATE SOURCE or CREATE SINK says, after the name, what a model says."""
        return body(kept) == normal(wanted)

    @available
    def kept_options(self, create_sql: str, query: str) -> dict[str, Any]:
        """The options that SHOW CREATE MATERIALIZED VIEW shows before the query."""
        head = create_sql.removesuffix(query)
        retained = _RETAIN.search(head)
        return {
            "retain_ms": int(retained[1]) if retained else None,
            "maintenance": "strict" if "MAINTENANCE = STRICT" in head else "auto",
        }
