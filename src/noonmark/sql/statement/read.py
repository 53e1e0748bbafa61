"""Statements that read: queries, SUBSCRIBE, EXPLAIN, AUDIT, SHOW."""

from __future__ import annotations

from typing import Any, Literal

from noonmark.sql import dialect, gate
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.options import one_cluster, options, with_options
from noonmark.sql.statement.reader import Reader

_AS_OF_VALUES = ("string", "number", "parameter")
_AS_OF_WORDS = ("at", "now", "mz_now", "timestamp", "timestamptz", "cast", "date")
_ALL_OF = "SELECT * FROM "
#: What stands before AS OF in a query, though some write it behind.
_BEFORE_AS_OF = ("where", "group by", "having", "window", "order by", "limit", "offset", "fetch")
_CLAUSES = ("as of", "up to", "with (", "envelope", "within timestamp")


def select(reader: Reader) -> s.Statement:
    """A query, the head of which is still ahead."""
    start, end = reader.at, len(reader.tokens) - 1
    as_of = _as_of_at(reader, start, end)
    if reader.is_next("table"):
        query = _all_of(reader, as_of or end)
    else:
        query = reader.query_between(start, as_of or end)
    reader.at = as_of or end
    at, at_least = _as_of(reader)
    return s.Select(query, at, at_least)


def select_into(reader: Reader) -> s.CreateTableAs | None:
    """``SELECT ... INTO [TEMPORARY] [TABLE] name FROM ...``; None where there is no INTO."""
    start, (_, into) = reader.at, reader.skip_to("into")
    if reader.ended or not reader.is_next("into"):
        reader.at = start
        return None
    reader.expect("into")
    temporary = reader.accept_any("temporary", "temp", "unlogged") in ("temporary", "temp")
    reader.accept("table")
    name = reader.name()
    # The rest is the query: with blanks for INTO, so that positions stay.
    text, offset = reader.slice(start, len(reader.tokens) - 1)
    first, last = (reader.tokens[at] for at in (into, reader.at - 1))
    cut, resume = first.start - offset, last.end - offset
    text = f"{text[:cut]}{' ' * (resume - cut)}{text[resume:]}"
    reader.at = len(reader.tokens) - 1
    query = s.QueryText(text, offset + 1, dialect.read(text, offset))
    return s.CreateTableAs(name, query, temporary=temporary)


def _all_of(reader: Reader, end: int) -> s.QueryText:
    """``TABLE name``, and what may follow a query."""
    position = reader.position
    reader.expect("table")
    start = reader.at
    named = select_all(reader.name())
    if reader.at == end:
        return s.QueryText(named.text, position, named.tree)
    gate.check(*reader.slice(start - 1, end))
    rest, offset = reader.slice(start, end)
    text = f"{_ALL_OF}{rest}"
    return s.QueryText(text, position, dialect.parse(text, offset - len(_ALL_OF)))


def select_all(name: s.Name) -> s.QueryText:
    """``SELECT * FROM name``."""
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in name.parts)
    text = f"{_ALL_OF}{quoted}"
    tree = dialect.parse(text, name.position - 1 - len(_ALL_OF))
    return s.QueryText(text, name.position, tree)


def _as_of_at(reader: Reader, start: int, end: int) -> int | None:
    """Where AS OF starts: outside brackets, and not an alias called "of"."""
    depth = 0
    for at in range(start, end - 1):
        token, after, value = reader.tokens[at], reader.tokens[at + 1], reader.tokens[at + 2]
        if token.kind == "sign" and token.value in "()":
            depth += 1 if token.value == "(" else -1
        if depth or token.kind != "word" or token.value != "as" or at == start:
            continue
        is_time = value.kind in _AS_OF_VALUES or value.value in (*_AS_OF_WORDS, "-", "(")
        if after.kind == "word" and after.value == "of" and is_time:
            return at
    return None


def _as_of(reader: Reader) -> tuple[s.ScalarText | None, s.ScalarText | None]:
    if not reader.accept("as", "of"):
        return None, None
    at_least = reader.accept("at", "least")
    time = reader.scalar_to(*_CLAUSES, *_BEFORE_AS_OF)
    if any(reader.is_next(*clause.split()) for clause in _BEFORE_AS_OF):
        raise reader.invalid("AS OF is the last clause of a query: write it behind this one.")
    return (None, time) if at_least else (time, None)


def subscribe(reader: Reader) -> s.Statement:
    """What follows SUBSCRIBE."""
    reader.accept("to")
    parts: dict[str, Any] = {}
    if reader.accept("("):
        start, end = reader.skip_to()
        parts["query"] = reader.query_between(start, end)
        reader.expect(")")
    elif reader.is_next("select") or reader.is_next("values") or reader.is_next("with"):
        start, end = reader.skip_to(*_CLAUSES)
        parts["query"] = reader.query_between(start, end)
    else:
        parts["name"] = reader.name()
        parts["query"] = select_all(parts["name"])
    while not reader.ended and not reader.is_next(")"):
        found = _subscribe_clause(reader)
        if any(name in parts for name in found):
            raise reader.invalid("a clause is given more than once")
        parts |= found
    return s.Subscribe(**parts)


def _subscribe_clause(reader: Reader) -> dict[str, Any]:
    if reader.is_next("as", "of"):
        at, at_least = _as_of(reader)
        return {"as_of": at, "as_of_at_least": at_least}
    if reader.accept("up", "to"):
        return {"up_to": reader.scalar_to(*_CLAUSES)}
    if reader.is_next("with"):
        return _subscribe_options(reader)
    if reader.accept("envelope"):
        kind = reader.accept_any("upsert", "debezium")
        if kind is None:
            raise reader.unsupported(f"ENVELOPE {reader.token.value.upper()}")
        reader.expect("(", "key")
        key = reader.names_in_parens()
        reader.expect(")")
        return {"envelope": kind, "key": key}
    if reader.accept("within", "timestamp", "order", "by"):
        return {"order": reader.list_of(lambda: reader.order_to(",", *_CLAUSES))}
    raise reader.invalid()


def _subscribe_options(reader: Reader) -> dict[str, Any]:
    position = reader.position
    found = with_options(reader)
    for name, value in found.items():
        if name not in ("snapshot", "progress") or not isinstance(value, bool):
            raise reader.unsupported(f"the option {name.upper()}", position=position)
    return found


def explain(reader: Reader) -> s.Statement:
    """What follows EXPLAIN."""
    from noonmark.sql.statement.parser import statement_of  # door: it uses this module

    if reader.accept("timestamp"):
        _as_format(reader)
        reader.expect("for")
        return s.Explain("timestamp", statement_of(reader))
    found = options(reader)
    if found.get("analyze") or reader.is_next("analyze"):
        raise reader.unsupported("EXPLAIN ANALYZE")
    reader.accept("verbose")
    reader.accept_any(
        "raw plan", "decorrelated plan", "locally optimized plan", "optimized plan", "physical plan"
    )
    reader.accept("plan")
    found |= with_options(reader)
    _as_format(reader)
    reader.accept("for")
    if reader.accept("materialized", "view"):
        return s.Explain("materialized view", name=reader.name(), options=found)
    if reader.accept("view"):
        return s.Explain("plan", s.Select(select_all(reader.name())), options=found)
    return s.Explain("plan", statement_of(reader), options=found)


def _as_format(reader: Reader) -> None:
    if reader.accept("as") and not reader.accept("text"):
        raise reader.unsupported(f"EXPLAIN AS {reader.token.value.upper()}")


def audit(reader: Reader) -> s.Statement:
    """What follows AUDIT."""
    reader.expect("materialized", "view")
    name = reader.name()
    at, at_least = _as_of(reader)
    if at_least is not None:
        raise reader.unsupported("AUDIT ... AS OF AT LEAST")
    return s.Audit(name, at)


_SHOWN = (
    "tables",
    "sources",
    "subsources",
    "views",
    "materialized views",
    "indexes",
    "index",
    "connections",
    "secrets",
    "sinks",
    "schemas",
    "databases",
    "objects",
    "roles",
    "types",
    "clusters",
)
_CREATED: dict[str, Literal["table", "source", "view", "materialized-view", "index"]] = {
    "table": "table",
    "source": "source",
    "materialized view": "materialized-view",
    "view": "view",
    "index": "index",
}
_VARIABLES = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
}


def show(reader: Reader) -> s.Statement:
    """What follows SHOW."""
    if reader.accept("create"):
        kind = reader.accept_any(*_CREATED, "connection", "sink")
        if kind is None:
            raise reader.unsupported(f"SHOW CREATE {reader.token.value.upper()}")
        return s.Show(f"create {kind}", reader.name())
    for words, variable in _VARIABLES.items():
        if reader.accept(*words.split()):
            return s.ShowVariable(variable)
    if reader.accept("columns"):
        reader.expect("from")
        name = reader.name()
        return s.Show("columns", name, None, *_matching(reader))
    start = reader.at
    what = reader.accept_any(*(f"{word} {each}" for word in ("full", "all") for each in _SHOWN))
    what = what.split(" ", 1)[1] if what else reader.accept_any(*_SHOWN)
    if what is not None and (reader.ended or reader.token.kind == "word"):
        return _show_objects(reader, "indexes" if what == "index" else what)
    reader.at = start
    return s.ShowVariable(".".join(reader.name().parts))


def _show_objects(reader: Reader, what: str) -> s.Statement:
    name, schema = None, None
    if reader.accept("on"):
        name = reader.name()
    if reader.accept_any("from", "in") is not None:
        if reader.accept("cluster"):
            one_cluster(reader)
        else:
            schema = reader.name().last
    return s.Show(what, name, schema, *_matching(reader))


def _matching(reader: Reader) -> tuple[str | None, s.ScalarText | None]:
    if reader.accept("like"):
        return reader.string(), None
    if reader.accept("where"):
        return None, reader.scalar_to()
    return None, None
