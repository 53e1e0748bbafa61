"""Statements that write to tables: INSERT, UPDATE, DELETE, TRUNCATE, COPY."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from sqlglot import exp

from noonmark.errors import InvalidSyntax, Unsupported
from noonmark.sql import dialect
from noonmark.sql.dialect import position_of
from noonmark.sql.lexer import Token
from noonmark.sql.plan.row import name_of
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.read import select, subscribe
from noonmark.sql.statement.reader import Reader


def _whole(reader: Reader) -> tuple[exp.Expr, str]:
    """The tree of the whole statement, whose first word has been taken."""
    text, offset = reader.slice(0, len(reader.tokens) - 1)
    reader.at = len(reader.tokens) - 1
    return dialect.read(text, offset), text


def _refuse(tree: exp.Expr, verb: str, *known: str) -> None:
    for name, value in tree.args.items():
        if value and name not in known:
            raise Unsupported(
                f"{name.strip('_').upper()} in {verb} is not supported", position=position_of(tree)
            )


def _table(tree: exp.Expr) -> tuple[s.Name, str | None]:
    if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
        raise InvalidSyntax("expected the name of a table", position=position_of(tree))
    parts = [tree.args.get(part) for part in ("catalog", "db", "this")]
    alias = tree.args.get("alias")
    name = s.Name(
        tuple(name_of(part) for part in parts if part is not None), position_of(tree) or 1
    )
    return name, None if alias is None else name_of(alias.this)


def _returning(tree: exp.Expr) -> tuple[exp.Expr, ...]:
    found = tree.args.get("returning")
    return () if found is None else tuple(found.expressions)


def _assignments(trees: Iterable[exp.Expr]) -> tuple[tuple[str, exp.Expr], ...]:
    return tuple(each for tree in trees for each in _assigned(tree))


def _assigned(tree: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """``a = x``, or ``(a, b) = (x, y)``, ``ROW (x, y)`` or ``(SELECT x, y ...)``."""
    if not isinstance(tree, exp.EQ):
        raise InvalidSyntax("syntax error: SET lacks =", position=position_of(tree))
    if isinstance(tree.this, exp.Column):
        return [(name_of(tree.this.this), tree.expression)]
    targets = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this.this]
    if any(not isinstance(each, exp.Column) for each in targets):
        raise InvalidSyntax("syntax error: SET lacks a column", position=position_of(tree))
    names = [name_of(each.this) for each in targets]
    values = _row(tree.expression)
    if len(values) != len(names):
        raise InvalidSyntax(
            "number of columns does not match number of values", position=position_of(tree)
        )
    return list(zip(names, values, strict=True))


def _row(tree: exp.Expr) -> list[exp.Expr]:
    """The values of a row; of a query, one query for each column."""
    inner = tree.this if isinstance(tree, exp.Paren) else tree
    if isinstance(inner, exp.Tuple):
        return list(inner.expressions)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "row":
        return list(inner.expressions)
    if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Select):
        width = len(inner.this.expressions)
        if any(isinstance(each, exp.Star) or each.is_star for each in inner.this.expressions):
            raise Unsupported("SET of several columns from SELECT * is not supported",
                              hint="Name the columns.", position=position_of(tree))  # fmt: skip
        return [_column(inner, at) for at in range(width)]
    raise InvalidSyntax(
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        position=position_of(tree),
    )


def _column(query: exp.Subquery, at: int) -> exp.Expr:
    """A query that gives one column of another. Both find the same rows: an UPDATE reads once."""
    one = query.copy()
    one.this.set("expressions", [one.this.expressions[at]])
    return one


def _overriding(reader: Reader) -> tuple[Reader, Literal["system", "user"] | None]:
    """The statement without OVERRIDING {SYSTEM | USER} VALUE, and which it was."""
    for at, token in enumerate(reader.tokens):
        words = [each.value for each in reader.tokens[at : at + 3] if each.kind == "word"]
        for which in _OVERRIDING:
            if words == ["overriding", which, "value"]:
                end = reader.tokens[at + 2].end
                text = reader.text[: token.start] + " " * (end - token.start) + reader.text[end:]
                rest = Reader(text, [*reader.tokens[:at], *reader.tokens[at + 3 :]])
                rest.at = reader.at
                return rest, which
    return reader, None


_OVERRIDING: tuple[Literal["system", "user"], ...] = ("system", "user")


def insert(reader: Reader) -> s.Statement:
    """What follows INSERT."""
    plain, overriding = _overriding(reader)
    if overriding is None:
        return _insert(reader)
    made = replace(_insert(plain), overriding=overriding, text=reader.text)
    reader.at = len(reader.tokens) - 1
    return made


def _insert(reader: Reader) -> s.Insert:
    if reader.accept("into") and _default_values(reader):
        return _insert_defaults(reader)
    tree, text = _whole(reader)
    if not isinstance(tree, exp.Insert):
        raise InvalidSyntax("syntax error: INSERT lacks a part", position=position_of(tree))
    _refuse(tree, "INSERT", "this", "expression", "returning", "conflict", "with_")
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        target, columns = target.this, tuple(name_of(each) for each in target.expressions)
    table, alias = _table(target)
    source = tree.expression
    if not isinstance(source, exp.Query | exp.Values):
        raise InvalidSyntax("INSERT lacks rows: VALUES or a query", position=position_of(tree))
    if tree.args.get("with_") is not None:
        raise Unsupported(
            "WITH in front of INSERT is not supported",
            hint="Put it behind INSERT INTO ..., in front of SELECT.",
            position=position_of(tree),
        )
    query = s.QueryText(text, position_of(source) or 1, source)
    return s.Insert(table, columns, query, _returning(tree), alias, text=text, **_conflict(tree))


def _default_values(reader: Reader) -> bool:
    words = [token.value for token in reader.tokens if token.kind == "word"]
    return "default" in words and words[words.index("default") :][:2] == ["default", "values"]


def _insert_defaults(reader: Reader) -> s.Insert:
    table = reader.name()
    reader.expect("default", "values")
    returning: tuple[exp.Expr, ...] = ()
    if reader.accept("returning"):
        returning = reader.select_list()
    return s.Insert(table, (), None, returning, text=reader.text)


def _conflict(tree: exp.Insert) -> dict[str, Any]:
    found = tree.args.get("conflict")
    if found is None:
        return {}
    constraint = found.args.get("constraint")
    keys = [
        each.this if isinstance(each, exp.Ordered) else each
        for each in _list(found, "conflict_keys")
    ]
    action = str(found.args.get("action") or "").upper()
    assignments = _assignments(_list(found, "expressions"))
    where, of = found.args.get("where"), found.args.get("index_predicate")
    return {
        "conflict": "update" if "UPDATE" in action else "nothing",
        "conflict_keys": tuple(map(_key, keys)),
        "conflict_of": None if of is None else of.this,
        "conflict_constraint": None if constraint is None else name_of(constraint),
        "assignments": assignments,
        "conflict_where": None if where is None else where.this,
    }


def _key(tree: exp.Expr) -> exp.Expr:
    """A column or an expression that ON CONFLICT names."""
    if isinstance(tree, exp.Identifier):
        made = exp.Column(this=tree)
        made.meta.update(tree.meta)
        return made
    return tree


def _list(tree: exp.Expr, name: str) -> list[exp.Expr]:
    return list(tree.args.get(name) or ())


def update(reader: Reader) -> s.Statement:
    """What follows UPDATE."""
    tree, text = _whole(reader)
    if not isinstance(tree, exp.Update):
        raise InvalidSyntax("syntax error: UPDATE lacks a part", position=position_of(tree))
    _refuse(tree, "UPDATE", "this", "expressions", "from_", "where", "returning")
    table, alias = _table(tree.this)
    assignments = _assignments(tree.expressions)
    if not assignments:
        raise InvalidSyntax("UPDATE lacks SET", position=position_of(tree))
    where = tree.args.get("where")
    return s.Update(
        table,
        assignments,
        alias,
        tree.args.get("from_"),
        None if where is None else where.this,
        _returning(tree),
        text,
    )


def delete(reader: Reader) -> s.Statement:
    """What follows DELETE."""
    tree, text = _whole(reader)
    if not isinstance(tree, exp.Delete):
        raise InvalidSyntax("syntax error: DELETE lacks a part", position=position_of(tree))
    _refuse(tree, "DELETE", "this", "using", "where", "returning")
    table, alias = _table(tree.this)
    where = tree.args.get("where")
    return s.Delete(
        table,
        alias,
        tuple(_list(tree, "using")),
        None if where is None else where.this,
        _returning(tree),
        text,
    )


def _only(reader: Reader) -> s.Name:
    """``[ONLY] table [*]``."""
    reader.accept("only")
    name = reader.name()
    reader.accept("*")
    return name


def truncate(reader: Reader) -> s.Statement:
    """What follows TRUNCATE."""
    reader.accept("table")
    tables = reader.list_of(lambda: _only(reader))
    identity = reader.accept_any("restart identity", "continue identity")
    way = reader.accept_any("cascade", "restrict")
    return s.Truncate(tables, identity == "restart identity", way == "cascade")


def lock(reader: Reader) -> s.Statement:
    """What follows LOCK."""
    reader.accept("table")
    tables = reader.list_of(lambda: _only(reader))
    if not (reader.accept("in", "access", "share") and reader.accept("mode")):
        raise reader.unsupported(
            "LOCK TABLE in a mode that others wait for",
            "Transactions are serializable: where two conflict, one is refused with 40001.",
        )
    reader.accept("nowait")
    return s.Lock(tables)


# --- COPY

_COPY_OPTIONS = ("format", "delimiter", "null", "header", "quote", "escape", "encoding", "freeze")


def copy(reader: Reader) -> s.Statement:
    """What follows COPY."""
    position = reader.position
    if reader.accept("("):
        start, end = reader.skip_to()
        inner = Reader(reader.text, [*reader.tokens[start:end], _end_at(reader, end)])
        is_stream = inner.accept("subscribe")
        statement = subscribe(inner) if is_stream else select(inner)
        inner.finish()
        reader.expect(")", "to", "stdout")
        return s.Copy("to", statement=statement, options=_copy_options(reader))
    table = reader.name()
    columns = reader.names_in_parens() if reader.is_next("(") else ()
    direction = reader.accept_any("from stdin", "to stdout")
    if direction is None:
        if reader.is_next("from") or reader.is_next("to"):
            raise reader.unsupported(
                "COPY with a file or a program", "Use FROM STDIN or TO STDOUT.", position
            )
        raise reader.invalid()
    way: Literal["from", "to"] = "from" if direction == "from stdin" else "to"
    return s.Copy(way, table, columns, options=_copy_options(reader))


def _end_at(reader: Reader, end: int) -> Any:
    place = reader.tokens[end].start
    return Token("end", "", place, place)


def _copy_options(reader: Reader) -> dict[str, Any]:
    reader.accept("with")
    position = reader.position
    found = _bracketed(reader) if reader.accept("(") else _old_copy_options(reader)
    for name in found:
        if name not in _COPY_OPTIONS:
            raise reader.unsupported(f"the option {name.upper()} of COPY", position=position)
    kind = str(found.get("format", "text")).lower()
    if kind not in ("text", "csv", "binary"):
        raise InvalidSyntax(f'COPY format "{kind}" not recognized', position=position)
    return {**found, "format": kind}


def _bracketed(reader: Reader) -> dict[str, Any]:
    """``(FORMAT csv, HEADER, NULL '')``: a name, then perhaps a value."""

    def one() -> tuple[str, Any]:
        name = reader.identifier()
        token = reader.token
        if token.kind == "sign":
            return name, True
        reader.take()
        if token.kind == "word" and token.value in ("true", "false", "on", "off"):
            return name, token.value in ("true", "on")
        return name, token.value

    found = dict(reader.list_of(one))
    reader.expect(")")
    return found


def _old_copy_options(reader: Reader) -> dict[str, Any]:
    """PostgreSQL's spelling from before brackets: ``WITH CSV HEADER DELIMITER ','``."""
    found: dict[str, Any] = {}
    while not reader.ended:
        if reader.accept("csv"):
            found["format"] = "csv"
        elif reader.accept("binary"):
            found["format"] = "binary"
        elif reader.accept("header"):
            found["header"] = True
        else:
            name = reader.accept_any("delimiter", "null", "quote", "escape")
            if name is None:
                raise reader.invalid()
            reader.accept("as")
            found[name] = reader.string()
    return found
