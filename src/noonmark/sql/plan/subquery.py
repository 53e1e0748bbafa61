"""Subqueries in expressions, and the conjuncts of WHERE that are subqueries.

Everywhere: the subquery becomes a relation of exactly one row and one column, and is attached to
the row (`Row.attach`).

    (SELECT x ...)        the aggregate "single value" of x: NULL of no row, an error of several
    EXISTS (SELECT ...)   count() > 0
    a op ANY (SELECT x)   TRUE if some a op x is TRUE, else NULL if one is NULL, else FALSE
    a op ALL (SELECT x)   NOT (NOT a op ANY ...)

As a conjunct of WHERE, where NULL and FALSE are the same, EXISTS, ANY and IN are a semi join, and
NOT EXISTS, ALL and NOT IN an anti join: ``a op ALL (Q)`` is TRUE iff no x of Q has ``a op x`` not
TRUE. These are exact also for NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from noonmark.errors import InvalidSyntax
from noonmark.rows import types as t
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.relation import (
    Aggregate,
    Apply,
    Filter,
    JoinKind,
    Project,
    Relation,
)
from noonmark.sql.ir.scalar import (
    BOOLEAN,
    FALSE,
    TRUE,
    And,
    Case,
    Coalesce,
    ColumnRef,
    Compare,
    FieldRef,
    Is,
    Literal,
    MakeArray,
    MakeRecord,
    Not,
    Or,
    OuterRef,
    Scalar,
    When,
    column,
    conjunction,
    map_columns,
    may_fail,
)
from noonmark.sql.plan.frame import inside
from noonmark.sql.plan.operator import compare_rows, row_fields
from noonmark.sql.plan.planned import Planned
from noonmark.sql.plan.query import plan_query
from noonmark.sql.plan.row import Row
from noonmark.sql.plan.scalar import compare, plan, plan_boolean

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _columns(planned: Planned, count: int, tree: exp.Expr) -> Relation:
    relation = planned.output()
    if len(relation.schema) != count:
        few = len(relation.schema) < count
        message = (
            "subquery must return only one column"
            if count == 1
            else f"subquery has too {'few' if few else 'many'} columns"
        )
        raise InvalidSyntax(message, position=position_of(tree))
    return relation


def scalar_subquery(tree: exp.Expr, row: Row) -> Scalar:
    """A query as a value."""
    frame, scope = inside(row)
    relation = _columns(plan_query(tree, frame), 1, tree)
    if not _gives_one_row(relation):
        only = column(0, relation.schema.columns[0])
        call = AggregateCall("single value(anyelement)", (only,))
        relation = Aggregate(relation, (), (call,), relation.schema.names)
    return row.attach(relation, scope, tree)


def row_subquery(tree: exp.Expr, count: int, row: Row) -> list[Scalar]:
    """A query as a row of so many values: NULL each where it gives no row."""
    frame, scope = inside(row)
    relation = _columns(plan_query(tree, frame), count, tree)
    columns = tuple(column(at, each) for at, each in enumerate(relation.schema))
    kind = t.Record(tuple(t.Field(f"f{at}", each.type) for at, each in enumerate(columns, 1)))
    whole = Project(relation, (MakeRecord(kind, columns),), ("row",))
    call = AggregateCall("single value(anyelement)", (column(0, whole.schema.columns[0]),))
    found = row.attach(Aggregate(whole, (), (call,), ("row",)), scope, tree)
    return [FieldRef(found, at) for at in range(count)]


def _gives_one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def exists(tree: exp.Expr, row: Row) -> Scalar:
    """Whether a query gives a row."""
    frame, scope = inside(row)
    return _is_there(_unasked(plan_query(tree, frame).output()), scope, row, tree)


def _unasked(relation: Relation) -> Relation:
    """The rows of a query of which nothing is asked but whether there are any: no value fails."""
    if not isinstance(relation, Project) or not any(map(may_fail, relation.scalars)):
        return relation
    return Project(relation.input, (TRUE,), ("exists",))


def array_subquery(tree: exp.Expr, row: Row) -> Scalar:
    """ARRAY(query): its rows in the order of the query."""
    frame, scope = inside(row)
    planned = plan_query(tree, frame)
    _columns(planned, 1, tree)
    item = column(0, planned.relation.schema.columns[0])
    order: tuple[SortKey, ...] = planned.order
    call = AggregateCall("array_agg(anyelement)", (item,), order=order)
    made = Aggregate(planned.relation, (), (call,), ("array",))
    none = MakeArray(t.Array(item.type), ())
    array = Coalesce((column(0, made.schema.columns[0]), none))
    return row.attach(Project(made, (array,), ("array",)), scope, tree)


def _operands(tree: exp.Expr, row: Row) -> list[Scalar]:
    parts = row_fields(tree)
    return [plan(each, row) for each in ([tree] if parts is None else parts)]


def _comparison(
    op: str, operands: Sequence[Scalar], relation: Relation, shift: int, tree: exp.Expr
) -> Scalar:
    """The operands against the columns of the relation, which stand `shift` places further."""
    columns = [
        ColumnRef(each.type, each.nullable, at + shift, each.name)
        for at, each in enumerate(relation.schema)
    ]
    pairs = list(zip(operands, columns, strict=True))
    return compare(op, *pairs[0], tree) if len(pairs) == 1 else compare_rows(op, pairs, tree)


def quantified(op: str, word: str, left: exp.Expr, query: exp.Expr, row: Row) -> Scalar:
    """``left op ANY (query)`` or ALL, in any place."""
    operands = _operands(left, row)
    frame, scope = inside(row)
    relation = _columns(plan_query(query, frame), len(operands), query)

    def from_outside(ref: ColumnRef) -> Scalar:
        return OuterRef(ref.type, ref.nullable, scope, ref.index, ref.name)

    outside = [map_columns(each, from_outside) for each in operands]
    if len(operands) == 1 and (op, word) in (("=", "any"), ("<>", "all")):
        member = _member(operands[0], outside[0], relation, scope, row)
        return Not(member) if word == "all" else member
    test = _comparison(op, outside, relation, 0, left)
    tests = Project(relation, (Not(test) if word == "all" else test,), ("test",))
    only = column(0, tests.schema.columns[0])
    calls = (
        AggregateCall("bool_or(boolean)", (only,)),
        AggregateCall("bool_or(boolean)", (Is(only, None),)),
    )
    found = Aggregate(tests, (), calls, ("found", "unknown"))
    some, unknown = (column(at, each) for at, each in enumerate(found.schema))
    result: Scalar = Case(
        (When(some, TRUE), When(unknown, Literal(BOOLEAN, None))),
        FALSE,
    )
    result = Not(result) if word == "all" else result
    return row.attach(Project(found, (result,), ("test",)), scope, left)


def _member(operand: Scalar, outside: Scalar, relation: Relation, scope: int, row: Row) -> Scalar:
    """``operand IN (relation)``: by an equality, which a join can look up.

    TRUE if some x is equal; else NULL if there is an x and one of the two is NULL; else FALSE.
    `outside` is the operand as the relation sees it.
    """
    tree = exp.Exists()
    equal = _comparison("=", [outside], relation, 0, tree)
    found = _is_there(Filter(relation, equal), scope, row, tree)
    item = column(0, relation.schema.columns[0])
    unknown: list[Scalar] = []
    if operand.nullable:
        unknown.append(And((Is(operand, None), _is_there(relation, scope, row, tree))))
    if item.nullable:
        unknown.append(_is_there(Filter(relation, Is(item, None)), scope, row, tree))
    branches = [When(found, TRUE)]
    if unknown:
        branches.append(When(Or(tuple(unknown)), Literal(BOOLEAN, None)))
    return Case(tuple(branches), FALSE)


def _is_there(relation: Relation, scope: int, row: Row, tree: exp.Expr) -> Scalar:
    counted = Aggregate(relation, (), (AggregateCall("count()"),), ("count",))
    some = Compare(">", column(0, counted.schema.columns[0]), Literal(t.BigInt(), 0))
    return row.attach(Project(counted, (some,), ("exists",)), scope, tree)


# --- WHERE


def conjunct_trees(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a conjunction, from the left."""
    stack = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Paren):
            stack.append(part.this)
        elif isinstance(part, exp.And):
            stack += (part.expression, part.this)
        else:
            yield part


def filter_by(tree: exp.Expr, row: Row) -> Relation:
    """The rows of the row's relation for which the condition is TRUE.

    Parts without a subquery come first: they are cheap, and guard the others.
    """
    assert row.relation is not None
    trees = list(conjunct_trees(tree))
    plain = [each for each in trees if not each.find(exp.Query)]
    predicates = [plan_boolean(each, row, row.place) for each in plain]
    if predicates:
        row.relation = Filter(row.relation, conjunction(predicates))
    for each in trees:
        if each.find(exp.Query) and not _semi_join(each, row):
            predicate = plan_boolean(each, row, row.place)
            row.relation = Filter(row.relation, predicate)
    return row.relation


def _semi_join(tree: exp.Expr, row: Row) -> bool:
    """Apply the conjunct as a semi or anti join, if it is one; the width of the row stays."""
    negated = False
    while isinstance(tree, exp.Not | exp.Paren):
        negated ^= isinstance(tree, exp.Not)
        tree = tree.this
    if isinstance(tree, exp.Exists):
        frame, scope = inside(row)
        relation = _unasked(plan_query(tree.this, frame).output())
        return _apply(JoinKind.ANTI if negated else JoinKind.SEMI, relation, scope, TRUE, row)
    if isinstance(tree, exp.In) and tree.args.get("query") is not None:
        word, op = ("all", "<>") if negated else ("any", "=")
        return _quantified_join(op, word, tree.this, tree.args["query"], row)
    return False


def _quantified_join(op: str, word: str, left: exp.Expr, query: exp.Expr, row: Row) -> bool:
    operands = _operands(left, row)
    assert row.relation is not None
    frame, scope = inside(row)
    relation = _columns(plan_query(query, frame), len(operands), query)
    shift = len(row.relation.schema)
    if word == "any":
        test = _comparison(op, operands, relation, shift, left)
        return _apply(JoinKind.SEMI, relation, scope, test, row)
    # No x for which the opposite may be true.
    test = Not(Is(_comparison(_NEGATED[op], operands, relation, shift, left), False))
    return _apply(JoinKind.ANTI, relation, scope, test, row)


def _apply(kind: JoinKind, relation: Relation, scope: int, on: Scalar, row: Row) -> bool:
    assert row.relation is not None
    row.relation = Apply(kind, row.relation, relation, scope, on)
    return True
