"""What a view is: its name, its text, its plan, and the collections that belong to it (`naming`).

Law: a view has an answer at a time iff `<view>_errors` is empty at that time. The two collections
have the same upper at every moment: they change in the same commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

from noonmark.compute.plan.arrangement import ArrangementSpec, arrangement_specs
from noonmark.compute.plan.growing import marked
from noonmark.compute.plan.naming import ARRANGEMENT, ERRORS, VIEW, errors_name
from noonmark.compute.plan.reductions import apart
from noonmark.compute.plan.window_limit import limited
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import asked
from noonmark.sql.ir.encoding import fingerprint
from noonmark.sql.ir.node import Node, rebuild, walk_once
from noonmark.sql.ir.scalar import Cast, Scalar, column
from noonmark.sql.meaning.evaluation import contents
from noonmark.sql.rules.temporal import separated

__all__ = [
    "ARRANGEMENT",
    "ERRORS",
    "ERRORS_SCHEMA",
    "LOWERING",
    "VIEW",
    "Definition",
    "errors_name",
    "inlined",
    "known",
]

ERRORS_SCHEMA = Schema.of(sqlstate="text not null", message="text not null")


@dataclass(frozen=True)
class Definition:
    """A view as it was asked for.

    Attributes:
        name: of its collection.
        relation: the plan.
        sql: the text that the plan came from, for people and for restarts.
        key: the columns that its contents are sorted by.
        as_written: the plan of the text, to which nothing was done: what an audit asks.
        growing: the collections from which rows are not expected to go.
    """

    name: str
    relation: r.Relation
    sql: str = ""
    key: tuple[str, ...] = ()
    as_written: r.Relation | None = field(default=None, compare=False, repr=False)
    growing: frozenset[str] = frozenset()

    @classmethod
    def of_sql(cls, name: str, sql: str, schemas: Mapping[str, Schema]) -> Definition:
        """The view that a query defines over collections of these schemas."""
        # door: executors import what is in this module, and need no parser
        from noonmark.sql.parse import plan_query
        from noonmark.sql.rules import simplify  # door: as above

        written = plan_query(sql, schemas).relation
        return cls(name, simplify(written), sql, as_written=written)

    @property
    def written(self) -> r.Relation:
        """The query as it is written."""
        return self.relation if self.as_written is None else self.as_written

    def stored_as(self, schema: Schema) -> Definition:
        """The same view for a collection whose columns an earlier version gave other types.

        Those of `OLD_NUMERIC` stay what they are: 18 digits after the point, rounded. So do
        numerics of a precision that are plain now, and varchars that are text.
        """
        own = self.relation.schema.columns
        if len(own) != len(schema):
            return self
        scalars: list[Scalar] = [
            Cast(old.type, column(at, each)) if _was(old.type, each.type) else column(at, each)
            for at, (each, old) in enumerate(zip(own, schema.columns, strict=True))
        ]
        if not any(isinstance(each, Cast) for each in scalars):
            return self
        names = self.relation.schema.names
        both = [r.Project(each, tuple(scalars), names) for each in (self.relation, self.written)]
        return replace(self, relation=both[0], as_written=both[1])

    @cached_property
    def plan(self) -> r.Relation:
        """The plan as it is maintained, without names for its parts: equal ones are equal.

        Raises:
            Unsupported: it follows the time in a way that no row decides.
        """
        lowered = reduce(lambda plan, lower: lower(plan), LOWERING, self.relation)
        # Accumulable and hierarchical reductions of one GROUP BY are split last.
        return apart(marked(lowered, self.growing))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The collections that it reads."""
        return tuple(sorted(r.scans(self.plan)))

    def meaning(self, numbers: Mapping[str, int]) -> str:
        """A short text for what the view means over its inputs, whatever those are called.

        Law: views of one text and one result have the same, also after what they read was renamed
        or given columns; a version that understands the text otherwise, or has another edition of
        a function in it, has another.

        Args:
            numbers: the collections' own, by name.
        """
        return fingerprint(_numbered(self.written, numbers))

    def arrangement_specs(self, keys: Mapping[str, tuple[str, ...]]) -> list[ArrangementSpec]:
        """What its delta rules have to remember; `keys` are the keys of the inputs."""
        return list(arrangement_specs(self.plan, keys))


def _numbered(node: r.Relation, numbers: Mapping[str, int]) -> r.Relation:
    """The plan over collections by number, of which it knows the columns that it was made over."""

    def act(child: Node) -> Node:
        return _numbered(child, numbers) if isinstance(child, r.Relation) else child

    match node:
        case r.Project(r.Scan(name, columns), scalars) if (
            scalars == _columns(columns)[: len(scalars)]
        ):
            return _numbered(r.Scan(name, Schema(columns.columns[: len(scalars)])), numbers)
        case r.Scan():
            own = [replace(each, name=f"c{at}") for at, each in enumerate(node.columns)]
            return r.Scan(str(numbers[node.collection]), Schema(tuple(own)))
    return rebuild(node, act)


def _columns(schema: Schema) -> tuple[Scalar, ...]:
    return tuple(column(at, each) for at, each in enumerate(schema))


def without_lets(node: r.Relation) -> r.Relation:
    """The plan without names for its parts."""
    return inlined(node, {})


def _was(old: t.SqlType, new: t.SqlType) -> bool:
    """Whether a column of one type is planned as the other today."""
    if t.is_plain(new):
        return isinstance(old, t.Numeric) and not old.is_plain
    return isinstance(new, t.Text) and isinstance(old, t.Varchar)


def known(node: r.Relation) -> r.Relation:
    """The plan with every recursion that reads no collection replaced by its rows.

    Raises:
        EvaluationError: such a recursion has no answer: the view would never have one.
    """
    if isinstance(node, r.Recursive) and _is_alone(node):
        rows = contents(node, {})
        return r.Constant(node.schema, tuple(row for row, n in rows.items() for _ in range(n)))

    def act(child: Node) -> Node:
        return known(child) if isinstance(child, r.Relation) else child

    return rebuild(node, act)


def _is_alone(node: r.Recursive) -> bool:
    """Whether nothing outside of a recursion decides what it is."""
    own = {name for x in walk_once(node) if isinstance(x, r.Recursive) for name in x.names}
    return not r.scans(node) and not asked(node) and own >= {get.name for get in r.gets(node)}


def inlined(node: r.Relation, bound: Mapping[str, r.Relation]) -> r.Relation:
    """The plan with every `Get` replaced by what `Let` binds it to."""

    def act(child: Node) -> Node:
        return inlined(child, bound) if isinstance(child, r.Relation) else child

    match node:
        case r.Let():
            return inlined(node.body, {**bound, node.name: inlined(node.value, bound)})
        case r.Get() if node.name in bound:
            return bound[node.name]
    return rebuild(node, act)


#: From the query, as the rules of `noonmark.sql.rules` left it, to what is maintained. Each pass
#: takes a plan and gives one with the same answer at every time.
LOWERING: tuple[Callable[[r.Relation], r.Relation], ...] = (
    without_lets,  # equal parts are equal, whatever they were called
    known,  # what reads no collection is computed now
    separated,  # conditions on the time are filters of their own, each of one bound
    limited,  # a window of which few rows are asked for keeps as few
)
