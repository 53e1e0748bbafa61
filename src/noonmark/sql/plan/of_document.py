"""``jsonb_to_record(d) AS x(a integer, b text)`` and its kin: the columns that an alias defines.

A member becomes a value of its column's type by its text, as `->>` gives it; a column of a document
has the member itself. A key that is not there, or is null, is NULL.
"""

from __future__ import annotations

from sqlglot import exp

from noonmark.errors import InvalidSyntax, UndefinedFunction
from noonmark.rows import types as t
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import TABLE_FUNCTIONS
from noonmark.sql.ir.call import TableCall
from noonmark.sql.ir.relation import ONE_ROW, FlatMap, Project, Relation, distinct_names
from noonmark.sql.ir.scalar import Literal, Scalar, column
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.item import Alias, Source
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import call, plan
from noonmark.sql.scope import Scope

#: The functions, and the type of the documents that they take.
OF_DOCUMENT: dict[str, t.SqlType] = {
    "json_to_record": t.Json(),
    "json_to_recordset": t.Json(),
    "jsonb_to_record": t.Jsonb(),
    "jsonb_to_recordset": t.Jsonb(),
}


def plan_of_document(tree: exp.Anonymous, ordinality: bool, alias: Alias, frame: Frame) -> Source:
    """One row of an object's members, or a row for every object of an array."""
    name, position = name_of(tree.this), position_of(tree)
    kind = OF_DOCUMENT[name]
    if len(tree.expressions) != 1:
        raise UndefinedFunction(f"function {name} takes one argument", position=position)
    if not alias.types:
        raise InvalidSyntax(
            'a column definition list is required for functions returning "record"',
            position=position,
        )
    if ordinality:
        raise InvalidSyntax(
            "WITH ORDINALITY cannot be used with a column definition list", position=position
        )
    row: Row = frame.row("FROM", Scope(), ONE_ROW)
    document = coerce(plan(tree.expressions[0], row), kind, position)
    assert row.relation is not None
    relation: Relation = row.relation
    if name.endswith("set"):
        entry = TABLE_FUNCTIONS.by_name[f"{kind}_array_elements"][0]
        relation = FlatMap(relation, TableCall(entry.id, (document,), False), ("row",))
        width = len(row.relation.schema)
        document = column(width, relation.schema.columns[width])
    whole = call("the object of", [document], tree, operator=False)
    scalars = tuple(
        _member(whole, key, one, tree) for key, one in zip(alias.columns, alias.types, strict=True)
    )
    made = Project(relation, scalars, tuple(distinct_names(alias.columns)))
    return Source(made, Scope.of(alias.name or name, alias.columns))


def _member(document: Scalar, key: str, kind: t.SqlType, tree: exp.Expr) -> Scalar:
    if isinstance(kind, t.Array | t.Record):
        raise unsupported(f"a column of type {kind} of a document", tree, hint="Use jsonb.")
    if isinstance(kind, t.Varchar | t.Char) and kind.length is not None:
        raise unsupported(f"a column of type {kind} of a document", tree, hint="Use text.")
    is_document = isinstance(kind, t.Jsonb | t.Json)
    found = call(
        "->" if is_document else "->>", [document, Literal(t.Text(), key)], tree, operator=True
    )
    return coerce(found, kind, position_of(tree))
