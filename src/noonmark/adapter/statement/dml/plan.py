"""Plans of statements that write: what they read, as a relation, and what they make of it.

A plan is made once per catalog and run many times; its parameters are bound when it is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.names import Names, over_collections
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.statement.dml.read import Needs, tables_read
from noonmark.adapter.statement.dml.returning import Beside, Returning, plan_returning
from noonmark.errors import TooComplex, Unsupported
from noonmark.rows.identity import hashable
from noonmark.rows.types import SqlType
from noonmark.sql.ir.relation import Relation
from noonmark.sql.parse import Query
from noonmark.sql.plan import query as planner
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.planned import Planned
from noonmark.sql.plan.row import Named, Statement
from noonmark.sql.plan.rowset import refuse_rowsets
from noonmark.sql.rules import simplify
from noonmark.sql.scope import scope_of

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


@dataclass
class Shared:
    """What the statements of one WITH share.

    Attributes:
        parameters: the types of $1, $2, ... that are known.
        names: the relations of WITH so far.
        silent: the names of statements that return nothing.
        used: what names of relations stand for: a query of WITH is a part of who names it.
    """

    parameters: dict[int, SqlType]
    names: dict[str, Named] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    used: dict[str, Item] = field(default_factory=dict)


class _WithNames(dict[str, Named]):
    """The relations of WITH, where some statements have none."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared.names)
        self._silent = shared.silent

    def __contains__(self, name: object) -> bool:
        if name in self._silent:
            raise Unsupported(f'WITH query "{name}" does not have a RETURNING clause')
        return super().__contains__(name)


class Planning:
    """The planning of one statement against one catalog; `shared` where it is one of WITH."""

    def __init__(
        self,
        session: AdapterSession,
        use: str,
        types: Sequence[SqlType | None],
        shared: Shared | None = None,
    ) -> None:
        self.session = session
        self.catalog: Catalog = session.catalog
        self.names = Names(self.catalog, session.access(use, self.catalog))
        stated = {at: kind for at, kind in enumerate(types, 1) if kind is not None}
        if shared is not None:
            stated, self.names.used = shared.parameters, shared.used
        self.statement = Statement(
            self.names,
            parameters=stated,
            session=session.functions,
            types=self.names.types,
            key_of=self.names.key_of,
        )
        #: What its queries stand in.
        names = {} if shared is None else _WithNames(shared)
        self.frame = Frame(self.statement, names)
        #: What an INSERT says of its identity columns, and what is done to a column now.
        self.overriding: str | None = None
        self.verb = "insert"

    def query(self, tree: exp.Expr) -> Planned:
        """The plan of a query inside the statement."""
        try:
            planned = planner.plan_query(tree, self.frame)
        except RecursionError:
            raise TooComplex.of_statement() from None
        if self.statement.late:
            raise Unsupported("LIMIT or OFFSET with a parameter in a statement that writes")
        return planned

    def one_value(self, *trees: exp.Expr, place: str) -> None:
        """Raise if one of the trees gives rows: what a row becomes is one row."""
        refuse_rowsets(trees, place, self.session.functions)

    def read(self, relation: Relation, position: int | None = None) -> Source:
        """What the statement reads, over collections."""
        names = relation.schema.names
        planned = over_collections(self.catalog, Query(relation, names, relation, ()), self.names)
        system = frozenset(item.scan_name for item in planned.leaves if item.is_virtual)
        peek = Peek.of(simplify(planned.query.relation), (), None, system)
        tables = frozenset(tables_read(self.catalog, planned.leaves, position))
        only = all(item.kind == "table" or item.is_virtual for item in planned.leaves)
        return Source(peek, Needs(tables, only))

    def returning(
        self, item: Item, alias: str | None, trees: Sequence[exp.Expr]
    ) -> Returning | None:
        """RETURNING of a statement that reads no other table beside."""
        if not trees:
            return None
        columns = item.schema.columns
        alone = Beside(scope_of(alias or item.name, item.schema), columns, len(columns))
        return plan_returning(self, trees, alone)[0]


@dataclass(frozen=True)
class Source:
    """What a statement reads: a peek, and the tables below it."""

    peek: Peek
    needs: Needs

    def writing(self, *tables: str) -> Needs:
        """What a statement needs that reads this and writes tables."""
        return Needs(self.needs.tables | set(tables), self.needs.only_tables)


def bound_values(values: Sequence[Any]) -> list[Any]:
    """The parameters' values as the evaluator takes them."""
    return list(hashable(values))
