"""SHOW of objects, under Materialize's columns: names, kinds, comments, and the text that made one.

Each is a list of rows made from the catalog; LIKE and WHERE choose among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import DATABASE, PUBLIC
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.adapter.contract import Field, Outcome, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.schedule.ended import status_of_table
from noonmark.adapter.sequence.default import by_uid, shown_defaults
from noonmark.adapter.sequence.options import written
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.system.facts import Facts
from noonmark.adapter.system.mz import object_type
from noonmark.adapter.system.pg_catalog import schema_oids
from noonmark.adapter.system.pg_index import indexes, reference
from noonmark.adapter.system.qualify import query_now
from noonmark.adapter.system.types import TYPES
from noonmark.adapter.table.checks import texts_of
from noonmark.adapter.table.constraints import foreigns_of, key_name, uniques_of
from noonmark.adapter.table.expressions import unqualified
from noonmark.adapter.table.generated import shown_generated
from noonmark.adapter.worker.values import little_value
from noonmark.errors import WrongObjectType
from noonmark.persist.impl.redact import redact
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.rows.types import SqlType, quote_name
from noonmark.sql.functions.text.pattern import like
from noonmark.sql.ir.asked import bind
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan_boolean
from noonmark.sql.redact import redacted
from noonmark.sql.scope import scope_of
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.options import CLUSTER

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]
_NAMED = Schema.of(name="text not null", comment="text not null")


def _comment(item: Item, column: str = "") -> str:
    return item.comments.get(column, "")


def _shown(facts: Facts, statement: st.Show, *kinds: str) -> list[Item]:
    """The items of some kinds in the schema that is asked for."""
    schema = statement.schema or PUBLIC
    return [i for i in facts.catalog.items() if i.kind in kinds and i.schema_name == schema]


def _named(*kinds: str) -> Callable[[Facts, st.Show], Iterable[Row]]:
    def rows(facts: Facts, statement: st.Show) -> Iterable[Row]:
        return [(item.name, _comment(item)) for item in _shown(facts, statement, *kinds)]

    return rows


def _sources(facts: Facts, statement: st.Show) -> Iterable[Row]:
    for item in _shown(facts, statement, "source", "subsource", "progress", "errors"):
        upstream = str(item.definition.get("upstream", "")).replace("generator", "load-generator")
        kind = upstream if item.kind == "source" else item.kind
        yield (item.name, kind, _status(facts, item), _comment(item))


def _status(facts: Facts, item: Item) -> str | None:
    """How a source is doing, or one of its tables; None for what is not read from upstream."""
    worker = facts.work.sources.get(item.part_of if item.kind == "subsource" else item.number)
    if worker is None:
        return None
    if item.kind == "subsource":
        return status_of_table(worker.status.state, worker.errors().get(item.name))
    return worker.status.state


def _connections(facts: Facts, statement: st.Show) -> Iterable[Row]:
    for item in _shown(facts, statement, "connection"):
        yield (item.name, str(item.definition.get("kind", "")), _comment(item))


def _objects(facts: Facts, statement: st.Show) -> Iterable[Row]:
    schema = statement.schema or PUBLIC
    for item in facts.catalog.items():
        if item.schema_name == schema and item.kind not in ("role", "schema"):
            yield (item.name, object_type(item), _comment(item))


def _indexes(facts: Facts, statement: st.Show) -> Iterable[Row]:
    wanted = None
    if statement.name is not None:
        access = facts.session.access("SHOW", facts.catalog)
        wanted = access.resolve("object", statement.name.parts, statement.name.position)
    for index in indexes(facts):
        if wanted is None or index.on == wanted:
            yield (index.name, index.on.name, tuple(index.columns), "")


def _schemas(facts: Facts, _: st.Show) -> Iterable[Row]:
    return [(name, "") for name, _number in schema_oids(facts)]


def _databases(_: Facts, __: st.Show) -> Iterable[Row]:
    return [(DATABASE, "")]


def _roles(facts: Facts, _: st.Show) -> Iterable[Row]:
    return [(name, _comment(item)) for name, item in facts.catalog.all_roles().items()]


def _types(_: Facts, __: st.Show) -> Iterable[Row]:
    return [(row.name, "") for row in TYPES]


def _clusters(_: Facts, __: st.Show) -> Iterable[Row]:
    return [(CLUSTER, "")]


def _columns(facts: Facts, statement: st.Show) -> Iterable[Row]:
    item = _item(facts, statement)
    for column in item.schema:
        yield (column.name, column.nullable, str(column.type), _comment(item, column.name))


def _item(facts: Facts, statement: st.Show) -> Item:
    assert statement.name is not None, "the parser asks for a name"
    access = facts.session.access("SHOW", facts.catalog)
    return access.resolve("object", statement.name.parts, statement.name.position)


# --- SHOW CREATE


def _create(facts: Facts, statement: st.Show) -> Iterable[Row]:
    item = _item(facts, statement)
    asked = statement.what.removeprefix("create ").replace(" ", "-")
    if item.kind != asked:
        kind = asked.replace("-", " ")
        raise WrongObjectType(f'"{item.name}" is not a {kind}', position=_position(statement))
    name = ".".join(map(quote_name, (DATABASE, item.schema_name, item.name)))
    if item.kind == "connection":
        return [(name, _connection_text(facts, item, name))]
    return [(name, redacted(_text_of(facts.catalog, item, name)))]


def _connection_text(facts: Facts, item: Item, name: str) -> str:
    """What would make the connection as it is now; its secrets by name."""
    said = []
    for key, value in item.definition["options"].items():
        if isinstance(value, Mapping):
            secret = facts.catalog.by_number[value["secret"]]
            shown = f"SECRET {quote_name(secret.schema_name)}.{quote_name(secret.name)}"
        elif isinstance(value, list | tuple):
            shown = f"({', '.join(_quoted(str(each)) for each in value)})"
        else:
            shown = _quoted(str(value))
        said.append(f"{key.replace('_', ' ').upper()} = {shown}")
    kind = item.definition["kind"].upper()
    return f"CREATE CONNECTION {name} TO {kind} ({', '.join(said)})"


def _quoted(text: str) -> str:
    url = redact(text) if "://" in text else text
    return "'" + url.replace("'", "''") + "'"


def _position(statement: st.Show) -> int | None:
    return None if statement.name is None else statement.name.position


def _text_of(catalog: Catalog, item: Item, name: str) -> str:
    match item.kind:
        case "table":
            return f"CREATE TABLE {name} {_table_columns(catalog, item)}"
        case "view":
            return f"CREATE VIEW {name}{_names(item)} AS {query_now(catalog, item)}"
        case "materialized-view":
            options = _options(item)
            query = query_now(catalog, item)
            return f"CREATE MATERIALIZED VIEW {name}{_names(item)}{options} AS {query}"
    return str(item.definition.get("text", ""))


def _table_columns(catalog: Catalog, item: Item) -> str:
    """What stands in the brackets of CREATE TABLE; run elsewhere, it makes the same table."""
    parts = [f"{column}{_source_of(catalog, item, column.name)}" for column in item.schema]
    if item.key:
        parts.append(f"{_constraint(item, key_name(item))}PRIMARY KEY {_listed(item.key)}")
    for unique in uniques_of(item):
        if unique.is_constraint:
            nulls = "" if unique.nulls_distinct else " NULLS NOT DISTINCT"
            parts.append(
                f"CONSTRAINT {quote_name(unique.name)} UNIQUE{nulls} {_listed(unique.columns)}"
            )
    for name, text, _ in texts_of(item):
        shown = unqualified(scalar_now(catalog, item, text, ()))
        parts.append(f"CONSTRAINT {quote_name(name)} CHECK ({shown})")
    for foreign in foreigns_of(item):
        said = reference(catalog, foreign)
        parts.append(f"CONSTRAINT {quote_name(foreign.name)} {said}")
    return f"({', '.join(parts)})"


def _source_of(catalog: Catalog, item: Item, column: str) -> str:
    """Where the values of a column come from that nobody gives."""
    strict = " NOT NULL" if column in item.definition.get("not_null", ()) else ""
    identity = item.definition.get("identity", {}).get(column)
    if identity is not None:
        kind = "ALWAYS" if identity[0] == "a" else "BY DEFAULT"
        options = written(by_uid(catalog)[identity[1]].definition)
        return f" GENERATED {kind} AS IDENTITY{options and f' ({options})'}"
    computed = shown_generated(catalog, item, ()).get(column)
    if computed is not None:
        return f" GENERATED ALWAYS AS ({unqualified(computed)}) STORED{strict}"
    default = shown_defaults(catalog, item, ()).get(column)
    return strict if default is None else f" DEFAULT {default}{strict}"


def _constraint(item: Item, name: str) -> str:
    return "" if name == f"{item.name}_pkey" else f"CONSTRAINT {quote_name(name)} "


def _listed(names: Iterable[str]) -> str:
    return f"({', '.join(map(quote_name, names))})"


def _names(item: Item) -> str:
    columns = item.definition.get("columns", ())
    return f" ({', '.join(map(quote_name, columns))})" if columns else ""


def _options(item: Item) -> str:
    found = []
    if item.retain_ms is not None:
        found.append(f"RETAIN HISTORY FOR '{item.retain_ms}ms'")
    if "maintenance" in item.definition:
        found.append(f"MAINTENANCE = {str(item.definition['maintenance']).upper()}")
    return f" WITH ({', '.join(found)})" if found else ""


_TYPED = Schema.of(name="text not null", type="text not null", comment="text not null")
_CREATED = Schema.of(name="text not null", create_sql="text not null")
_SHOWN: dict[str, tuple[Schema, Callable[[Facts, st.Show], Iterable[Row]]]] = {
    "tables": (_NAMED, _named("table")),
    "views": (_NAMED, _named("view")),
    "materialized views": (_NAMED, _named("materialized-view")),
    "secrets": (_NAMED, _named("secret")),
    "sinks": (_NAMED, _named("sink")),
    "subsources": (_NAMED, _named("subsource", "progress", "errors")),
    "sources": (
        Schema.of(name="text not null", type="text not null", status="text", comment="text"),
        _sources,
    ),
    "connections": (_TYPED, _connections),
    "objects": (_TYPED, _objects),
    "schemas": (_NAMED, _schemas),
    "databases": (_NAMED, _databases),
    "roles": (_NAMED, _roles),
    "types": (_NAMED, _types),
    "clusters": (_NAMED, _clusters),
    "indexes": (
        Schema.of(name="text not null", on="text", key="text[]", comment="text"),
        _indexes,
    ),
    "columns": (
        Schema.of(name="text not null", nullable="boolean", type="text", comment="text"),
        _columns,
    ),
}


def _relation(statement: st.Show) -> tuple[Schema, Callable[[Facts, st.Show], Iterable[Row]]]:
    if statement.what.startswith("create "):
        return _CREATED, _create
    return _SHOWN[statement.what]


async def describe_show(
    _: AdapterSession, statement: st.Show, __: Sequence[SqlType | None]
) -> Described:
    """The columns of this SHOW."""
    schema, _rows = _relation(statement)
    return Described(fields=tuple(Field(column.name, column.type) for column in schema))


async def run_show(session: AdapterSession, statement: st.Show, _: Sequence[Any]) -> Outcome:
    """The rows, in the order of their names; columns in their own."""
    schema, make = _relation(statement)
    rows = list(make(Facts.of(session), statement))
    if statement.what != "columns":
        rows.sort(key=lambda row: str(row[0]))
    if statement.like is not None:
        pattern = like(statement.like)
        rows = [row for row in rows if pattern.matches(row[0])]
    if statement.where is not None:
        rows = _where(session, schema, rows, statement.where)
    fields = tuple(Field(column.name, column.type) for column in schema)
    arrays = [at for at, column in enumerate(schema) if isinstance(column.type, t.Array)]
    for at in arrays:
        rows = [(*row[:at], list(row[at]), *row[at + 1 :]) for row in rows]
    return Rows(fields, Listed(rows))


def _where(
    session: AdapterSession, schema: Schema, rows: list[Row], text: st.ScalarText
) -> list[Row]:
    row = Frame(Statement({}, session=session.functions)).row("WHERE", scope_of("", schema))
    row.columns = schema.columns
    predicate = bind(plan_boolean(text.tree, row, "WHERE"), ())
    return [each for each in rows if little_value(predicate, each) is True]


HANDLERS: Handlers = {st.Show: run_show}
DESCRIBERS: Describers = {st.Show: describe_show}
