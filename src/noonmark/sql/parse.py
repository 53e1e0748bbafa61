"""The front door: SQL text and the schemas of collections to a plan.

`plan_query` gives the plan as it is written; `rules.simplify` makes it one that can be computed.

    >>> from noonmark.rows.schema import Schema
    >>> query = plan_query("SELECT a + 1 AS b FROM t", {"t": Schema.of(a="integer not null")})
    >>> str(query.relation.schema), query.names
    ('(b integer NOT NULL)', ('b',))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from noonmark.errors import TooComplex, Unsupported
from noonmark.rows.schema import Schema
from noonmark.sql.dialect import parse
from noonmark.sql.ir.asked import asked, bind
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import Relation
from noonmark.sql.plan import query as planner
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement


@dataclass(frozen=True)
class Query:
    """A planned query.

    `relation` has the output columns; its schema's names are distinct, `names` are as written and
    may repeat. `ordered` is the same relation with the columns behind it that only `order` uses: a
    client that asked for an order sorts `ordered` by `order` and keeps the first `len(names)`.
    """

    relation: Relation
    names: tuple[str, ...]
    ordered: Relation
    order: tuple[SortKey, ...]

    def bound(self, values: Sequence[Any] = (), now: int | None = None) -> Query:
        """The query for one execution: see `ir.asked.bind`."""
        if not asked(self.ordered):
            return self
        # The output is made of the ordered relation: one change keeps what they share.
        relation = bind(self.relation, values, now)
        ordered = relation if self.ordered is self.relation else bind(self.ordered, values, now)
        return Query(
            relation, self.names, ordered, tuple(bind(key, values, now) for key in self.order)
        )


def plan_query(query: str | exp.Expr, schemas: Mapping[str, Schema] | Statement) -> Query:
    """The plan of one query (its text or tree) over the collections of the given names.

    With a `Statement` the query may have parameters and ask the session: the statement then knows
    the parameters' types, and whether the plan depends on their values.

    Raises:
        SqlError: the text means nothing; the error says where and why.
        Unsupported: it means something that is not built, and says what.
    """
    tree = parse(query) if isinstance(query, str) else query
    statement = schemas if isinstance(schemas, Statement) else Statement(schemas)
    if not isinstance(tree, exp.Query | exp.Values):
        raise Unsupported(f"{tree.key.upper()} is not a query", position=1)
    try:
        planned = planner.plan_query(tree, Frame(statement))
    except RecursionError:
        raise TooComplex.of_statement() from None
    return Query(planned.output(), planned.names, planned.relation, planned.order)
