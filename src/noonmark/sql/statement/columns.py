"""The columns and constraints of CREATE TABLE and of ALTER TABLE ... ADD."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from noonmark.errors import InvalidSyntax
from noonmark.rows.types import parse_type
from noonmark.sql.statement import tables as s
from noonmark.sql.statement.reader import Reader
from noonmark.sql.statement.sequence import SERIAL, identity

_CONSTRAINTS = "PRIMARY KEY, UNIQUE, FOREIGN KEY, NOT NULL and CHECK are the constraints."
#: What ends the type of a column, and the expression of its DEFAULT.
_AFTER_DEFAULT = (
    ",",
    "not",
    "null",
    "primary",
    "unique",
    "check",
    "references",
    "constraint",
    "generated",
    "collate",
    "deferrable",
    "initially",
)
_AFTER_TYPE = (*_AFTER_DEFAULT, "default", "using")
_ACTIONS = ("no action", "restrict", "cascade", "set null", "set default")
_INCLUDED = ("all", "defaults", "constraints", "identity", "indexes", "comments", "generated",
             "statistics", "storage", "compression")  # fmt: skip
#: What begins a constraint of a table.
CONSTRAINTS = ("primary key", "unique", "check", "foreign key", "exclude")

Constraint = s.CheckText | s.UniqueText | s.ForeignText


def column_list(reader: Reader, table: str = "") -> s.Columns:
    """``(name type ..., UNIQUE (...), CHECK (...), LIKE ...)``."""
    columns: list[s.ColumnSpec] = []
    found = s.Columns(())
    reader.expect("(")
    while not reader.accept(")"):
        if reader.accept("like"):
            found = replace(found, likes=(*found.likes, _like(reader, len(columns))))
        elif is_constraint_next(reader):
            found = _with(found, table_constraint(reader), table)
        else:
            column, constraints = column_spec(reader, table)
            columns.append(column)
            for each in (*column.checks, *constraints):
                found = _with(found, each, table)
        if not reader.is_next(")"):
            reader.expect(",")
    return replace(found, columns=tuple(columns))


def _with(found: s.Columns, one: Constraint, table: str) -> s.Columns:
    if isinstance(one, s.CheckText):
        return replace(found, checks=(*found.checks, one))
    if isinstance(one, s.ForeignText):
        return replace(found, foreigns=(*found.foreigns, one))
    if one.primary and found.key:
        raise s.InvalidTable(
            f'multiple primary keys for table "{table}" are not allowed', position=one.position
        )
    return replace(found, uniques=(*found.uniques, one))


def is_constraint_next(reader: Reader) -> bool:
    """Whether a constraint of the table comes, and no column."""
    words = (*CONSTRAINTS, "constraint")
    return any(reader.is_next(*each.split()) for each in words)


def table_constraint(reader: Reader) -> Constraint:
    """[CONSTRAINT name] PRIMARY KEY | UNIQUE | CHECK | FOREIGN KEY, of a table."""
    name = reader.identifier() if reader.accept("constraint") else None
    position = reader.position
    kind = reader.accept_any(*CONSTRAINTS)
    if kind == "check":
        return _check(reader, name)
    if kind in ("primary key", "unique"):
        distinct = _nulls_distinct(reader) if kind == "unique" else True
        if reader.is_next("using", "index"):
            raise reader.unsupported("USING INDEX of a constraint")
        columns = reader.names_in_parens()
        reader.accept("not", "enforced")
        made = s.UniqueText(columns, name, distinct, kind == "primary key", position)
        _refuse_deferrable(reader)
        return made
    if kind == "foreign key":
        columns = reader.names_in_parens()
        reader.expect("references")
        return _references(reader, columns, name, position)
    raise reader.unsupported("this constraint of a table", _CONSTRAINTS, position)


def _nulls_distinct(reader: Reader) -> bool:
    if reader.accept("nulls", "not", "distinct"):
        return False
    reader.accept("nulls", "distinct")
    return True


def _refuse_deferrable(reader: Reader) -> None:
    """Keys are checked by each statement, or by COMMIT, and not when somebody says so."""
    if reader.is_next("deferrable"):
        raise reader.unsupported("DEFERRABLE of a unique constraint")
    reader.accept("not", "deferrable")
    reader.accept("initially", "immediate")


def _references(
    reader: Reader, columns: tuple[str, ...], name: str | None, position: int
) -> s.ForeignText:
    """What follows REFERENCES."""
    table = reader.name()
    others = reader.names_in_parens() if reader.is_next("(") else ()
    if reader.accept("match") and not reader.accept("simple"):
        raise reader.unsupported("MATCH other than SIMPLE")
    actions: dict[str, s.Action] = {}
    while reader.accept("on"):
        when = "on_delete" if reader.accept("delete") else "on_update"
        if when == "on_update":
            reader.expect("update")
        action = reader.accept_any(*_ACTIONS)
        if action is None:
            raise reader.invalid()
        if reader.is_next("("):
            raise reader.unsupported(f"{action.upper()} of some columns of a foreign key")
        actions[when] = cast(s.Action, action)
    deferrable, deferred = _deferred(reader)
    return s.ForeignText(
        columns,
        table,
        others,
        name,
        actions.get("on_delete", "no action"),
        actions.get("on_update", "no action"),
        deferrable,
        deferred,
        position,
    )


def _deferred(reader: Reader) -> tuple[bool, bool]:
    if reader.accept("not", "deferrable"):
        reader.accept("initially", "immediate")
        return False, False
    deferrable = reader.accept("deferrable")
    if reader.accept("initially", "deferred"):
        return True, True
    reader.accept("initially", "immediate")
    return deferrable, False


def check_text(reader: Reader, name: str | None, column: str | None = None) -> s.CheckText:
    """What follows CHECK: the condition."""
    reader.expect("(")
    condition = reader.scalar_to(")")
    reader.expect(")")
    return s.CheckText(condition, name, column)


def _check(reader: Reader, name: str | None, column: str | None = None) -> s.CheckText:
    """What follows CHECK of a table."""
    made = check_text(reader, name, column)
    if reader.accept("no", "inherit") or reader.accept("not", "valid"):
        raise reader.unsupported("a CHECK that does not hold everywhere")
    return made


def _like(reader: Reader, at: int) -> s.Like:
    """What follows LIKE."""
    table = reader.name()
    including: set[str] = set()
    while (verb := reader.accept_any("including", "excluding")) is not None:
        what = reader.accept_any(*_INCLUDED)
        if what is None:
            raise reader.invalid()
        every = set(_INCLUDED[1:]) if what == "all" else {what}
        including = including | every if verb == "including" else including - every
    return s.Like(table, frozenset(including), at)


def column_spec(reader: Reader, table: str) -> tuple[s.ColumnSpec, tuple[Constraint, ...]]:
    """One column, and the constraints of the table that stand at it; its CHECKs are its own."""
    position = reader.position
    name = reader.identifier()
    serial = reader.token.value if reader.token.kind == "word" else ""
    if serial in SERIAL:
        reader.take()
        column = s.ColumnSpec(name, parse_type(SERIAL[serial]), False, None, position, serial=True)
    else:
        column = s.ColumnSpec(name, reader.type_to(*_AFTER_TYPE), True, None, position)
    constraints: list[Constraint] = []
    while not (reader.is_next(",") or reader.is_next(")") or reader.ended):
        before = column
        column, more = _column_part(reader, column)
        _check_sources(before, column, table)
        constraints += more
    return column, tuple(constraints)


def _column_part(
    reader: Reader, column: s.ColumnSpec
) -> tuple[s.ColumnSpec, tuple[Constraint, ...]]:
    name = reader.identifier() if reader.accept("constraint") else None
    position = reader.position
    if reader.accept("not", "null"):
        return replace(column, nullable=False), ()
    if reader.accept("null"):
        return column, ()
    if reader.accept("check"):
        return replace(column, checks=(*column.checks, _check(reader, name, column.name))), ()
    if reader.accept("primary", "key"):
        _refuse_deferrable(reader)
        return column, (s.UniqueText((column.name,), name, True, True, position),)
    if reader.accept("unique"):
        distinct = _nulls_distinct(reader)
        _refuse_deferrable(reader)
        return column, (s.UniqueText((column.name,), name, distinct, False, position),)
    if reader.accept("references"):
        return column, (_references(reader, (column.name,), name, position),)
    if reader.accept("collate"):
        check_collation(reader)
        return column, ()
    if reader.accept("default"):
        return replace(column, default=reader.scalar_to(*_AFTER_DEFAULT)), ()
    if reader.accept("generated"):
        return _generated(reader, column), ()
    raise reader.unsupported(f"{reader.token.value.upper()} of a column", _CONSTRAINTS)


def check_collation(reader: Reader) -> None:
    """What follows COLLATE: text is compared by its bytes."""
    collation = reader.name().last
    if collation not in ("default", "C", "POSIX"):
        raise reader.unsupported(f'collation "{collation}"')


def _generated(reader: Reader, column: s.ColumnSpec) -> s.ColumnSpec:
    """What follows GENERATED."""
    if not reader.is_next("always", "as", "("):
        made = identity(reader)
        return replace(column, identity=made, nullable=False)
    reader.expect("always", "as", "(")
    text = reader.scalar_to(")")
    reader.expect(")")
    if not reader.accept("stored"):
        raise reader.unsupported("a generated column that is not STORED")
    return replace(column, generated=text)


def _check_sources(before: s.ColumnSpec, after: s.ColumnSpec, table: str) -> None:
    """A column has one place that its values come from."""
    taken = [name for name in _SOURCES if getattr(before, name)]
    given = [name for name in _SOURCES if getattr(after, name) is not getattr(before, name)]
    if not taken or not given:
        return
    kinds = {_SOURCES[taken[0]], _SOURCES[given[0]]}
    what = f"both {' and '.join(each for each in _TWICE if each in kinds)} specified"
    if len(kinds) == 1:
        what = _TWICE[kinds.pop()]
    raise InvalidSyntax(
        f'{what} for column "{after.name}" of table "{table}"', position=after.position
    )


_SOURCES = {
    "serial": "default",
    "default": "default",
    "identity": "identity",
    "generated": "generation expression",
}
#: What is said of two of a kind.
_TWICE = {
    "default": "multiple default values specified",
    "identity": "multiple identity specifications",
    "generation expression": "multiple generation clauses specified",
}
