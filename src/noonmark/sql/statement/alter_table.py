"""ALTER TABLE name action, ...: the actions that change columns and constraints."""

from __future__ import annotations

from noonmark.sql.statement import tables as s
from noonmark.sql.statement.base import Name
from noonmark.sql.statement.columns import column_spec, is_constraint_next, table_constraint
from noonmark.sql.statement.reader import Reader


def is_action_next(reader: Reader) -> bool:
    """Whether an action on columns or constraints comes."""
    return any(reader.is_next(word) for word in ("add", "drop", "alter", "validate"))


def alter_table(reader: Reader, name: Name, if_exists: bool) -> s.AlterTable | s.AddColumn:
    """The actions, with commas between."""
    actions = reader.list_of(lambda: _action(reader, name.last))
    if len(actions) == 1 and isinstance(actions[0], s.AddColumnAction):
        made, spec = actions[0], actions[0].column
        sources = (spec.default, spec.serial, spec.identity, spec.generated)
        more = any(sources) or spec.checks or made.constraints
        if spec.nullable and not more:
            return s.AddColumn(name, spec, made.if_not_exists)
    return s.AlterTable(name, actions, if_exists)


def _action(reader: Reader, table: str) -> s.TableAction:
    if reader.accept("add"):
        if is_constraint_next(reader):
            return s.AddConstraint(table_constraint(reader))
        reader.accept("column")
        if_not_exists = reader.if_not_exists()
        column, constraints = column_spec(reader, table)
        return s.AddColumnAction(column, constraints, if_not_exists)
    if reader.accept("drop", "constraint"):
        if_exists = reader.if_exists()
        name = reader.identifier()
        cascade = reader.accept_any("cascade", "restrict") == "cascade"
        return s.DropConstraint(name, if_exists, cascade)
    if reader.accept("drop"):
        reader.accept("column")
        if_exists = reader.if_exists()
        name = reader.identifier()
        cascade = reader.accept_any("cascade", "restrict") == "cascade"
        return s.DropColumn(name, if_exists, cascade)
    if reader.accept("alter"):
        reader.accept("column")
        return _column_action(reader)
    words = [each.value for each in reader.tokens[reader.at : reader.at + 2] if each.kind == "word"]
    raise reader.unsupported(f"ALTER TABLE ... {' '.join(words)}".upper().rstrip())


def _column_action(reader: Reader) -> s.TableAction:
    column, position = reader.identifier(), reader.position
    if reader.accept("set", "default"):
        return s.SetDefault(column, reader.scalar_to(","))
    if reader.accept("drop", "default"):
        return s.SetDefault(column, None)
    if reader.accept("drop", "expression"):
        return s.DropExpression(column, reader.if_exists())
    if reader.accept("set", "not", "null"):
        return s.SetNotNull(column, True)
    if reader.accept("drop", "not", "null"):
        return s.SetNotNull(column, False)
    if reader.accept("type") or reader.accept("set", "data", "type"):
        kind = reader.type_to(",", "using", "collate")
        return s.AlterType(column, kind, reader.scalar_to(",") if reader.accept("using") else None)
    words = [each.value for each in reader.tokens[reader.at : reader.at + 2] if each.kind == "word"]
    raise reader.unsupported(
        f"ALTER COLUMN ... {' '.join(words)}".upper().rstrip(),
        "Make another table with CREATE TABLE AS, and rename it.",
        position,
    )
