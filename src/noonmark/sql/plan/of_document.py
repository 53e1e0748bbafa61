"""``jsonb_to_record(d) AS x(a integer, b text)`` and its kin: the columns that an alias defines.

``jsonb_populate_record(NULL::t, d)`` has the columns of a table t: it reads the table's definition
and none of its rows, and a view of it depends on the table as on one that it reads.

A member becomes a value of its column's type by its text, as `->>` gives it; a column of a document
has the member itself. A key that is not there, or is null, is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from noonmark.errors import InvalidSyntax, UndefinedFunction, UndefinedObject
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
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
from noonmark.sql.scope import SYSTEM_COLUMN, Scope

#: The functions, and the type of the documents that they take.
OF_DOCUMENT: dict[str, t.SqlType] = {
    "json_to_record": t.Json(),
    "json_to_recordset": t.Json(),
    "jsonb_to_record": t.Jsonb(),
    "jsonb_to_recordset": t.Jsonb(),
}


#: Those whose first argument says the columns, and the same of the second.
POPULATED: dict[str, t.SqlType] = {
    "json_populate_record": t.Json(),
    "json_populate_recordset": t.Json(),
    "jsonb_populate_record": t.Jsonb(),
    "jsonb_populate_recordset": t.Jsonb(),
}


def plan_populated(tree: exp.Anonymous, ordinality: bool, alias: Alias, frame: Frame) -> Source:
    """The same with the columns of a table."""
    name, position = name_of(tree.this), position_of(tree)
    if len(tree.expressions) != 2:
        raise UndefinedFunction(f"function {name} takes two arguments", position=position)
    if alias.types:
        raise InvalidSyntax(
            "a column definition list is redundant for a function returning a named composite type",
            position=position,
        )
    if ordinality:
        raise unsupported(f"WITH ORDINALITY of {name}", tree)
    schema = _row_type(tree.expressions[0], frame)
    if schema is None:
        raise unsupported(
            f"{name} of another record than NULL",
            tree,
            hint="Write NULL::table, of a table with the columns that are wanted.",
        )
    own = [column for column in schema if column.name != SYSTEM_COLUMN]
    names = [*alias.columns, *(each.name for each in own[len(alias.columns) :])]
    members = [(each.name, each.type) for each in own]
    return _of_members(tree, tree.expressions[1], POPULATED[name], members, names, alias, frame)


def _row_type(tree: exp.Expr, frame: Frame) -> Schema | None:
    """The columns of ``NULL::table``; None of anything else."""
    if not isinstance(tree, exp.Cast) or not isinstance(tree.this, exp.Null):
        return None
    kind = tree.args["to"].args.get("kind")
    if isinstance(kind, exp.Dot):
        spelled = f"{name_of(kind.this)}.{name_of(kind.expression)}"
    elif isinstance(kind, exp.Identifier):
        spelled = name_of(kind)
    else:
        return None
    schema = frame.statement.schemas.get(spelled)
    if schema is None:
        raise UndefinedObject(f'type "{spelled}" does not exist', position=position_of(tree))
    return schema


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
    members = list(zip(alias.columns, alias.types, strict=True))
    return _of_members(tree, tree.expressions[0], kind, members, alias.columns, alias, frame)


def _of_members(  # noqa: PLR0917 - two callers, of one form
    tree: exp.Anonymous,
    written: exp.Expr,
    kind: t.SqlType,
    members: Sequence[tuple[str, t.SqlType]],
    names: Sequence[str],
    alias: Alias,
    frame: Frame,
) -> Source:
    """A row of an object's members of these names and types, or one for every object."""
    name = name_of(tree.this)
    row: Row = frame.row("FROM", Scope(), ONE_ROW)
    document = coerce(plan(written, row), kind, position_of(tree))
    assert row.relation is not None
    relation: Relation = row.relation
    if name.endswith("set"):
        entry = TABLE_FUNCTIONS.by_name[f"{kind}_array_elements"][0]
        relation = FlatMap(relation, TableCall(entry.id, (document,), False), ("row",))
        width = len(row.relation.schema)
        document = column(width, relation.schema.columns[width])
    whole = call("the object of", [document], tree, operator=False)
    scalars = tuple(_member(whole, key, one, tree) for key, one in members)
    made = Project(relation, scalars, tuple(distinct_names(names)))
    return Source(made, Scope.of(alias.name or name, names))


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
