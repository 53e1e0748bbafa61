"""A query that is planned, with the columns that only its order uses."""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import (
    Project,
    Relation,
)
from noonmark.sql.ir.scalar import column


@dataclass(frozen=True)
class Planned:
    """A query's relation: the output columns, and behind them those that only `order` uses."""

    relation: Relation
    names: tuple[str, ...]
    order: tuple[SortKey, ...] = ()
    unknown: frozenset[int] = frozenset()  # outputs that were quoted literals or NULL

    def output(self) -> Relation:
        """The relation of the output columns alone."""
        return _first(self.relation, len(self.names))


def _first(relation: Relation, count: int) -> Relation:
    schema = relation.schema
    if len(schema) == count:
        return relation
    kept = tuple(column(at, each) for at, each in enumerate(schema.columns[:count]))
    return Project(relation, kept, schema.names[:count])
