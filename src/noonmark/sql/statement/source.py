"""CREATE SOURCE and CREATE SINK: where rows come from and go to, and in what form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from noonmark.errors import InvalidSyntax, InvalidValue
from noonmark.rows.types import Text
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.columns import column_list
from noonmark.sql.statement.options import in_cluster, options, with_options
from noonmark.sql.statement.reader import Reader

_FORMATS = ("json", "csv", "text", "bytes", "avro", "protobuf", "parquet")
_FORMAT_OPTIONS: dict[str, dict[str, type]] = {"csv": {"delimiter": str, "header": bool}}
#: Refused by name before anything of a script is done (`adapter.schedule.generators` makes them).
GENERATORS = ("counter", "clock", "auction", "tpch", "key value")
_ENVELOPES = ("none", "upsert", "debezium")
Columns = tuple[s.ColumnSpec, ...]


def create_source(reader: Reader) -> s.Statement:
    """What follows CREATE SOURCE."""
    parts: dict[str, Any] = {"if_not_exists": reader.if_not_exists(), "name": reader.name()}
    in_cluster(reader)
    names: tuple[str, ...] = ()
    named_at = reader.position
    if reader.is_next("("):
        if _only_names(reader):
            names = reader.names_in_parens()
        else:
            made = column_list(reader)
            parts["columns"], parts["key"] = made.columns, made.key
            if made.checks:
                raise reader.unsupported("CHECK of a source's columns", "Filter in a view.")
            if made.foreigns or made.likes or any(not each.primary for each in made.uniques):
                raise reader.unsupported("a constraint of a source other than PRIMARY KEY")
            if any(each.serial or each.identity or each.generated for each in made.columns):
                raise reader.unsupported("a column of a source that is generated")
    reader.expect("from")
    parts["upstream"] = _upstream(reader)
    while not reader.ended:
        position = reader.position
        found = _clause(reader)
        twice = [name for name in found if name in parts]
        if twice:
            raise InvalidSyntax("a clause is given more than once", position=position)
        parts |= found
    written: s.Format | None = parts.get("format")
    if written is not None and written.kind == "csv":
        parts["format"], parts["columns"] = _csv_columns(
            written, parts.get("columns"), names, named_at
        )
    elif names:
        raise InvalidSyntax("names of columns without types are for FORMAT CSV", position=named_at)
    return s.CreateSource(**parts)


def _csv_columns(
    written: s.Format, typed: Columns | None, names: tuple[str, ...], position: int
) -> tuple[s.Format, Columns | None]:
    """The format without what it says of columns, and the columns: text, where nobody gave types.

    Raises:
        InvalidSyntax: there are two numbers of columns.
    """
    options = dict(written.options)
    count, header = options.pop("column_count", None), options.pop("columns", ())
    names = names or header or tuple(f"column{at}" for at in range(1, (count or 0) + 1))
    if typed is None and names:
        typed = tuple(s.ColumnSpec(name, Text()) for name in names)
    if typed is not None and any(n not in (None, len(typed)) for n in (count, len(header) or None)):
        raise InvalidSyntax(
            f"FORMAT CSV has {count or len(header)} columns, the source {len(typed)}",
            position=position,
        )
    return s.Format(written.kind, options), typed


def _only_names(reader: Reader) -> bool:
    """``(a, b)``: a name is followed by a comma or the end."""
    token = reader.tokens[min(reader.at + 2, len(reader.tokens) - 1)]
    return token.kind == "sign" and token.value in (",", ")")


def _upstream(reader: Reader) -> s.Upstream:
    if reader.accept("load", "generator"):
        kind = reader.accept_any(*GENERATORS)
        if kind is None:
            raise reader.unsupported(
                f"the load generator {reader.token.value.upper()}",
                f"There are {', '.join(GENERATORS).upper()}.",
            )
        return s.Generator(kind, options(reader))
    if reader.accept("files"):
        return s.Files(reader.string(), options(reader))
    if reader.accept("webhook"):
        return s.Webhook(options(reader))
    for words, kind_of in _CONNECTED.items():
        if reader.accept(words, "connection"):
            connection = reader.name()
            return kind_of(connection, options(reader))
    raise reader.unsupported(f"a source FROM {reader.token.value.upper()}")


_CONNECTED: dict[str, Callable[[s.Name, s.Options], s.Upstream]] = {
    "kafka": s.Kafka,
    "postgres": s.Postgres,
}


def _clause(reader: Reader) -> dict[str, Any]:
    if reader.accept("for"):
        return {"tables": _tables(reader)}
    if reader.accept("key", "format"):
        key_format = format_of(reader)
        reader.expect("value", "format")
        return {"key_format": key_format, "format": format_of(reader)}
    if reader.accept("format") or reader.accept("body", "format"):
        return {"format": format_of(reader)}
    if reader.accept("include"):
        return {"include": reader.list_of(lambda: _include(reader))}
    if reader.accept("envelope"):
        return {"envelope": _envelope(reader, _ENVELOPES)}
    if reader.accept("expose", "progress", "as"):
        return {"progress": reader.name()}
    if reader.is_next("with"):
        return {"options": with_options(reader)}
    if reader.accept("check"):
        return {"check": _check(reader)}
    raise reader.invalid()


def _tables(reader: Reader) -> tuple[s.Subsource, ...] | Literal["all"]:
    if reader.accept("all", "tables"):
        return "all"
    if reader.is_next("schemas"):
        raise reader.unsupported("FOR SCHEMAS", "Use FOR ALL TABLES or FOR TABLES (...).")
    reader.expect("tables", "(")
    found = reader.list_of(lambda: subsource(reader))
    reader.expect(")")
    return found


def subsource(reader: Reader) -> s.Subsource:
    """A table upstream, and AS what it is called here."""
    upstream = reader.name()
    if reader.accept("as"):
        return s.Subsource(upstream, reader.name())
    return s.Subsource(upstream, s.Name(upstream.parts[-1:], upstream.position))


def _include(reader: Reader) -> tuple[str, ...]:
    if reader.accept("header"):
        header = reader.string()
        reader.expect("as")
        name = reader.identifier()
        return "header bytes" if reader.accept("bytes") else "header", name, header
    what = reader.accept_any("key", "partition", "offset", "timestamp", "headers", "all", "not")
    if what in (None, "all", "not"):
        raise reader.unsupported("INCLUDE of this")
    assert what is not None
    return what, reader.identifier() if reader.accept("as") else what


def _check(reader: Reader) -> s.Check:
    """``( [WITH (HEADERS, BODY AS b BYTES, SECRET s AS k)] condition )``."""
    reader.expect("(")
    given: tuple[s.CheckInput, ...] = ()
    if reader.accept("with", "("):
        given = reader.list_of(lambda: _check_input(reader))
        reader.expect(")")
    condition = reader.scalar_to(")")
    reader.expect(")")
    return s.Check(condition, given)


def _check_input(reader: Reader) -> s.CheckInput:
    what = reader.accept_any("headers", "body", "secret")
    if what is None:
        raise reader.invalid("expected HEADERS, BODY or SECRET")
    secret = reader.name() if what == "secret" else None
    name = what if secret is None else secret.last
    if reader.accept("as"):
        name = reader.identifier()
    return s.CheckInput(cast(Any, what), name, reader.accept("bytes"), secret)


def _envelope(reader: Reader, known: tuple[str, ...]) -> str:
    found = reader.accept_any(*known)
    if found is None:
        raise reader.unsupported(f"ENVELOPE {reader.token.value.upper()}")
    if reader.is_next("("):
        raise reader.unsupported(f"options of ENVELOPE {found.upper()}")
    return found


def format_of(reader: Reader) -> s.Format:
    """What follows FORMAT."""
    kind = reader.accept_any(*_FORMATS)
    if kind is None:
        raise reader.unsupported(f"FORMAT {reader.token.value.upper()}")
    found: dict[str, Any] = {}
    if kind == "csv":
        found = _csv(reader)
    elif kind == "avro" and reader.accept("using", "confluent", "schema", "registry"):
        reader.expect("connection")
        found = {"connection": reader.name()}
    elif kind == "avro" and reader.accept("using", "schema"):
        found = {"schema": reader.string()}
    elif reader.is_next("using"):
        raise reader.unsupported(f"FORMAT {kind.upper()} USING")
    if reader.is_next("("):
        found |= _format_options(reader, kind)
    return s.Format(cast(Any, kind), found)


def _format_options(reader: Reader, kind: str) -> dict[str, Any]:
    """Options of a format in brackets, each of its type."""
    position, found = reader.position, options(reader)
    for name, value in found.items():
        shown, wanted = name.replace("_", " ").upper(), _FORMAT_OPTIONS.get(kind, {}).get(name)
        if wanted is None:
            raise InvalidValue(f"FORMAT {kind.upper()} has no option {shown}", position=position)
        if not isinstance(value, wanted):
            what = "a text" if wanted is str else "true or false"
            raise InvalidValue(f"{shown} takes {what}", position=position)
    return found


def _csv(reader: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # WITH ( begins the options of the source itself.
    if not reader.is_next("with", "(") and reader.accept("with"):
        if reader.accept("header"):
            found["header"] = True
            if reader.is_next("("):
                found["columns"] = reader.names_in_parens()
        else:
            found["column_count"] = reader.integer()
            reader.expect("columns")
    if reader.accept("delimited", "by") or reader.accept("delimiter"):
        found["delimiter"] = reader.string()
    return found


def create_sink(reader: Reader) -> s.Statement:
    """What follows CREATE SINK."""
    if_not_exists = reader.if_not_exists()
    name = reader.name()
    reader.expect("from")
    source = reader.name()
    reader.expect("into", "kafka", "connection")
    connection = reader.name()
    found = options(reader)
    key: tuple[str, ...] = ()
    if reader.accept("key"):
        key = reader.names_in_parens()
        reader.accept("not", "enforced")
    kind = format_of(reader) if reader.accept("format") else None
    envelope = _envelope(reader, _ENVELOPES[1:]) if reader.accept("envelope") else None
    return s.CreateSink(
        name, source, connection, found, key, kind, cast(Any, envelope), if_not_exists
    )
