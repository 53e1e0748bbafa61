"""CREATE, except of sources: see `source`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from noonmark.errors import InvalidSyntax
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.columns import column_list
from noonmark.sql.statement.domain import create_domain
from noonmark.sql.statement.options import in_cluster, options, with_options
from noonmark.sql.statement.reader import Reader
from noonmark.sql.statement.role import create_role
from noonmark.sql.statement.sequence import create_sequence
from noonmark.sql.statement.source import create_sink, create_source
from noonmark.sql.statement.types import create_type

_TEMPORARY = ("global temporary", "global temp", "local temporary", "local temp",
              "temporary", "temp")  # fmt: skip


def create(reader: Reader) -> s.Statement:
    """What follows CREATE."""
    or_replace = reader.accept("or", "replace")
    position = reader.position
    scope = reader.accept_any(*_TEMPORARY, "unlogged")
    if scope is not None:
        kind = reader.accept_any("table", "sequence", "view" if scope != "unlogged" else "table")
        if kind is None:
            raise reader.unsupported(
                f"CREATE {scope.upper()} {reader.token.value.upper()}", position=position
            )
        made: s.CreateTable | s.CreateTableAs | s.CreateSequence | s.CreateView
        made = _view(reader, or_replace) if kind == "view" else _TEMPORARY_KINDS[kind](reader)
        return made if scope == "unlogged" else replace(made, temporary=True)
    for words, parser in _REPLACEABLE.items():
        if reader.accept(*words.split()):
            return parser(reader, or_replace)
    if or_replace:
        raise reader.unsupported("OR REPLACE here", "Only views can be replaced.", position)
    for words, plain in _CREATE.items():
        if reader.accept(*words.split()):
            return plain(reader)
    if reader.token.kind == "word":
        raise reader.unsupported(f"CREATE {reader.token.value.upper()}")
    raise reader.invalid()


# --- tables


def _table(reader: Reader) -> s.CreateTable | s.CreateTableAs:
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    if reader.is_next("from", "source"):
        raise reader.unsupported("CREATE TABLE FROM SOURCE")
    if _is_query_next(reader):
        return _table_as(reader, name, if_not_exists)
    made = column_list(reader, name.last)
    if reader.is_next("inherits"):
        raise reader.unsupported("INHERITS")
    if reader.is_next("partition"):
        raise reader.unsupported("PARTITION BY")
    found = with_options(reader)
    drop = _on_commit_drop(reader)
    return s.CreateTable(
        name,
        made.columns,
        made.key,
        if_not_exists,
        found,
        on_commit_drop=drop,
        checks=made.checks,
        uniques=made.uniques,
        foreigns=made.foreigns,
        likes=made.likes,
    )


def _is_query_next(reader: Reader) -> bool:
    """Whether a query says what the columns are: AS is there, and in front of it names alone."""
    ahead = Reader(reader.text, reader.tokens[reader.at :])
    if ahead.accept("("):
        start, end = ahead.skip_to()
        signs = ahead.tokens[start + 1 : end : 2]
        return bool(signs or end == start + 1) and all(token.value == "," for token in signs)
    return not ahead.ended


def _table_as(reader: Reader, name: s.Name, if_not_exists: bool) -> s.CreateTableAs:
    columns = reader.names_in_parens() if reader.is_next("(") else ()
    found = with_options(reader)
    drop = _on_commit_drop(reader)
    reader.expect("as")
    start, end = reader.skip_to()
    words = [token.value for token in reader.tokens[end - 3 : end] if token.kind == "word"]
    without = words == ["with", "no", "data"]
    if without or words[-2:] == ["with", "data"]:
        end -= 3 if without else 2
    query = reader.query_between(start, end)
    reader.at = len(reader.tokens) - 1
    return s.CreateTableAs(
        name, query, columns, if_not_exists, found, on_commit_drop=drop, with_data=not without
    )


def _on_commit_drop(reader: Reader) -> bool:
    """What becomes of a temporary table at COMMIT."""
    if not reader.accept("on", "commit"):
        return False
    if reader.accept("delete", "rows"):
        raise reader.unsupported("ON COMMIT DELETE ROWS")
    if reader.accept("drop"):
        return True
    reader.expect("preserve", "rows")
    return False


# --- views


def _view_head(reader: Reader) -> tuple[bool, s.Name, tuple[str, ...]]:
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    columns = reader.names_in_parens() if reader.is_next("(") else ()
    return if_not_exists, name, columns


def rest_as_query(reader: Reader) -> s.QueryText:
    """All that is left is a query."""
    start, end = reader.skip_to()
    query = reader.query_between(start, end)
    reader.finish()
    return query


def _view(reader: Reader, or_replace: bool) -> s.CreateView:
    if_not_exists, name, columns = _view_head(reader)
    reader.expect("as")
    return s.CreateView(name, rest_as_query(reader), columns, or_replace, if_not_exists)


def _materialized_view(reader: Reader, or_replace: bool) -> s.Statement:
    if_not_exists, name, columns = _view_head(reader)
    in_cluster(reader)
    position = reader.position
    found = with_options(reader)
    reader.expect("as")
    start, end = reader.skip_to()
    trailing = _trailing_with(reader, start, end)
    query = reader.query_between(start, trailing or end)
    if trailing:
        reader.at = trailing
        found |= with_options(reader)
    reader.finish()
    check_view_options(found, position)
    return s.CreateMaterializedView(name, query, columns, or_replace, if_not_exists, found)


def _trailing_with(reader: Reader, start: int, end: int) -> int | None:
    """``WITH (`` behind the query: a WITH of the query itself is followed by a name."""
    depth = 0
    for at in range(start, end):
        token = reader.tokens[at]
        if token.kind == "sign" and token.value in "()":
            depth += 1 if token.value == "(" else -1
        after = reader.tokens[at + 1]
        bracket = after.kind == "sign" and after.value == "("
        if depth == 0 and at > start and token.kind == "word" and token.value == "with" and bracket:
            return at
    return None


def check_view_options(found: s.Options, position: int) -> None:
    """Only the options that a materialized view has."""
    unknown = set(found) - {"retain_history", "maintenance"}
    if unknown:
        raise InvalidSyntax(
            f"a materialized view has no option {min(unknown).upper()}",
            hint="RETAIN HISTORY FOR and MAINTENANCE are its options.",
            position=position,
        )
    if found.get("maintenance", "auto") not in ("auto", "strict"):
        raise InvalidSyntax("MAINTENANCE is AUTO or STRICT", position=position)


def _unique_index(reader: Reader) -> s.Statement:
    reader.expect("index")
    return replace(_index(reader), unique=True)


def _index(reader: Reader) -> s.CreateIndex:
    reader.accept("concurrently")
    if_not_exists = reader.if_not_exists()
    name = None if reader.is_next("on") else reader.name()
    return _index_on(reader, name, if_not_exists)


def _default_index(reader: Reader) -> s.Statement:
    if_not_exists = reader.if_not_exists()
    in_cluster(reader)
    reader.expect("on")
    return s.CreateIndex(None, reader.name(), (), if_not_exists, with_options(reader))


def _index_on(reader: Reader, name: s.Name | None, if_not_exists: bool) -> s.CreateIndex:
    in_cluster(reader)
    reader.expect("on")
    on = reader.name()
    if reader.accept("using"):
        reader.identifier()
    reader.expect("(")
    expressions = reader.list_of(lambda: _index_item(reader))
    reader.expect(")")
    distinct = not reader.accept("nulls", "not", "distinct")
    if distinct:
        reader.accept("nulls", "distinct")
    found = with_options(reader)
    where = reader.scalar_to("with (") if reader.accept("where") else None
    found = found or with_options(reader)
    return s.CreateIndex(
        name, on, expressions, if_not_exists, found, nulls_distinct=distinct, where=where
    )


def _index_item(reader: Reader) -> s.ScalarText:
    """A column, with what PostgreSQL's clients write behind it: a class of operators, an order."""
    ends = (",", "asc", "desc", "nulls", *_OPERATOR_CLASSES)
    item = reader.scalar_to(*ends)
    while reader.accept_any(*ends[1:], "first", "last") is not None:
        pass
    return item


#: Every order of an index answers the same questions here.
_OPERATOR_CLASSES = ("text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops", "text_ops",
                     "varchar_ops", "int4_ops", "int8_ops", "uuid_ops")  # fmt: skip


# --- the rest


def _connection(reader: Reader) -> s.Statement:
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    reader.expect("to")
    kind = reader.accept_any(
        "kafka",
        "confluent schema registry",
        "postgres",
        "aws privatelink",
        "aws",
        "ssh tunnel",
        "mysql",
    )
    if kind is None:
        raise reader.unsupported(f"CREATE CONNECTION TO {reader.token.value.upper()}")
    found = options(reader)
    validate = with_options(reader).get("validate")
    return s.CreateConnection(name, kind, found, if_not_exists, validate)


def _secret(reader: Reader) -> s.Statement:
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    reader.expect("as")
    return s.CreateSecret(name, reader.scalar_to(), if_not_exists)


def _schema(reader: Reader) -> s.Statement:
    if_not_exists = reader.if_not_exists()
    return s.CreateSchema(reader.name(), if_not_exists)


def _database(reader: Reader) -> s.Statement:
    if_not_exists = reader.if_not_exists()
    return s.CreateDatabase(reader.identifier(), if_not_exists)


_REPLACEABLE: dict[str, Callable[[Reader, bool], s.Statement]] = {
    "view": _view,
    "materialized view": _materialized_view,
}
_TEMPORARY_KINDS: dict[
    str, Callable[[Reader], s.CreateTable | s.CreateTableAs | s.CreateSequence]
] = {"table": _table, "sequence": create_sequence}
_CREATE: dict[str, Callable[[Reader], s.Statement]] = {
    "table": _table,
    "sequence": create_sequence,
    "source": create_source,
    "sink": create_sink,
    "index": _index,
    "unique": _unique_index,
    "default index": _default_index,
    "connection": _connection,
    "secret": _secret,
    "role": create_role,
    "user": create_role,
    "schema": _schema,
    "database": _database,
    "type": create_type,
    "domain": create_domain,
}
