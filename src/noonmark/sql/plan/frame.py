"""What a query is planned inside of: the statement, the names of WITH, and the row outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from noonmark.sql.ir.relation import Get, Relation
from noonmark.sql.plan.row import Named, Row, Statement, unsupported
from noonmark.sql.scope import Scope


@dataclass(frozen=True)
class Frame:
    """The surroundings of one query."""

    statement: Statement
    names: Mapping[str, Named] = field(default_factory=dict)
    outer: Row | None = None
    outer_scope: int = 0

    def row(self, place: str, scope: Scope, relation: Relation | None = None) -> Row:
        """What an expression of this query sees at one stage."""
        return Row(
            self.statement,
            place,
            scope,
            relation,
            outer=self.outer,
            outer_scope=self.outer_scope,
            names=self.names,
        )

    def binding(self, name: str, relation: Get, columns: Sequence[str]) -> Frame:
        """This frame with one more name of WITH, and what its columns are called."""
        return replace(self, names={**self.names, name: Named(relation, tuple(columns))})


def inside(row: Row) -> tuple[Frame, int]:
    """The frame of a query that is asked for every row, and the number of its Apply."""
    scope = row.statement.fresh_scope()
    return Frame(row.statement, row.names, row, scope), scope


def only(tree: exp.Expr, *known: str) -> None:
    """Refuse every part of a node that the planner does not read."""
    for name, value in tree.args.items():
        if value and name not in known:
            raise unsupported(f"{name.strip('_').upper().replace('_', ' ')} here", tree)
