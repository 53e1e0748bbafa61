"""MERGE: a source of rows, and what each does to the rows of a table that match it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from sqlglot import exp

from noonmark.errors import InvalidSyntax
from noonmark.sql import dialect
from noonmark.sql.dialect import position_of
from noonmark.sql.plan.row import name_of
from noonmark.sql.statement.base import Name, Statement
from noonmark.sql.statement.reader import Reader

#: Which rows a WHEN is for: pairs, rows of the source alone, rows of the target alone.
Kind = Literal["matched", "not matched", "not matched by source"]
Verb = Literal["update", "delete", "insert", "nothing"]
_SELECT = "SELECT * FROM "
_VERBS: dict[Kind, tuple[str, ...]] = {
    "matched": ("update set", "delete"),
    "not matched": ("insert",),
    "not matched by source": ("update set", "delete"),
}


@dataclass(frozen=True)
class When:
    """WHEN kind [AND condition] THEN verb; no columns of INSERT are all, no values the defaults."""

    kind: Kind
    verb: Verb
    condition: exp.Expr | None = None
    columns: tuple[str, ...] = ()
    values: tuple[exp.Expr, ...] = ()
    overriding: Literal["system", "user"] | None = None
    position: int = field(default=1, compare=False)


@dataclass(frozen=True)
class Merge(Statement):
    """MERGE INTO table USING source ON condition WHEN ..."""

    table: Name
    alias: str | None
    source: exp.Expr
    source_alias: str
    condition: exp.Expr
    whens: tuple[When, ...]
    returning: tuple[exp.Expr, ...] = ()
    text: str = ""


def merge(reader: Reader) -> Statement:
    """What follows MERGE."""
    reader.expect("into")
    reader.accept("only")
    table = reader.name()
    reader.accept("*")
    alias = None
    if reader.accept("as") or not reader.is_next("using"):
        alias = reader.identifier()
    reader.expect("using")
    source, name = _source(reader)
    reader.expect("on")
    condition = reader.scalar_to("when").tree
    whens: list[When] = []
    while reader.accept("when"):
        whens.append(_when(reader))
    if not whens:
        raise reader.invalid()
    returning = reader.select_list() if reader.accept("returning") else ()
    _check_reachable(whens)
    return Merge(table, alias, source, name, condition, tuple(whens), returning, reader.text)


def _source(reader: Reader) -> tuple[exp.Expr, str]:
    """What stands between USING and ON, and its name."""
    position = reader.position
    text, offset = reader.slice(*reader.skip_to("on"))
    tree = dialect.read(_SELECT + text, offset - len(_SELECT))
    found = tree.args.get("from_")
    if found is None or tree.args.get("joins") or tree.args.get("where"):
        raise InvalidSyntax("MERGE takes one source", position=position)
    one: exp.Expr = found.this
    if not one.alias_or_name:
        raise InvalidSyntax("the source of MERGE lacks a name", position=position)
    named = one.args.get("alias")
    return one, name_of(one.this if named is None else named.this)


def _when(reader: Reader) -> When:
    """What follows WHEN."""
    position = reader.position
    kind = cast(Kind | None, reader.accept_any("matched", "not matched by source", "not matched"))
    if kind is None:
        raise reader.invalid()
    if kind == "not matched":
        reader.accept("by", "target")
    condition = reader.scalar_to("then").tree if reader.accept("and") else None
    reader.expect("then")
    verb = reader.accept_any("do nothing", *_VERBS[kind])
    if verb is None:
        raise reader.invalid()
    if verb == "insert":
        return _insert(reader, condition, position)
    if verb == "update set":
        columns, values = _assignments(reader)
        return When(kind, "update", condition, columns, values, position=position)
    return When(kind, "delete" if verb == "delete" else "nothing", condition, position=position)


def _insert(reader: Reader, condition: exp.Expr | None, position: int) -> When:
    columns = reader.names_in_parens() if reader.is_next("(") else ()
    overriding: Literal["system", "user"] | None = None
    if reader.accept("overriding"):
        overriding = "system" if reader.accept("system") else "user"
        if overriding == "user":
            reader.expect("user")
        reader.expect("value")
    values: tuple[exp.Expr, ...] = ()
    if not reader.accept("default", "values"):
        reader.expect("values", "(")
        values = tuple(each.tree for each in reader.list_of(lambda: reader.scalar_to(",")))
        reader.expect(")")
        if columns and len(columns) < len(values):
            raise InvalidSyntax(
                "INSERT has more expressions than target columns",
                position=position_of(values[len(columns)]),
            )
        if len(columns) > len(values):
            raise InvalidSyntax("INSERT has more target columns than expressions")
    return When("not matched", "insert", condition, columns, values, overriding, position)


def _assignments(reader: Reader) -> tuple[tuple[str, ...], tuple[exp.Expr, ...]]:
    columns: list[str] = []
    values: list[exp.Expr] = []

    def one() -> None:
        if reader.is_next("("):
            raise reader.unsupported("SET of several columns at once")
        columns.append(reader.identifier())
        reader.expect("=")
        values.append(reader.scalar_to(",", "when", "returning").tree)

    reader.list_of(one)
    return tuple(columns), tuple(values)


def _check_reachable(whens: list[When]) -> None:
    final: set[str] = set()
    for when in whens:
        if when.kind in final:
            raise InvalidSyntax(
                "unreachable WHEN clause specified after unconditional WHEN clause",
                position=None,
            )
        if when.condition is None:
            final.add(when.kind)
