"""From an item of the catalog to what maintains it: a view's definition, a source and its feeds.

What an item remembers is plain data, so these functions are where an object of SQL becomes one of
the layers below; the same functions check a statement when it is made and take it up at a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.names import view_relation
from noonmark.adapter.schedule.generators import generator
from noonmark.compute.plan.definition import Definition
from noonmark.errors import Unsupported
from noonmark.ingest.feed import Feed, postgres_table, raw, typed
from noonmark.rows.schema import Schema
from noonmark.source.contract import Source
from noonmark.source.format.csv import Csv
from noonmark.source.format.decode import Format
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json
from noonmark.source.format.plain import Bytes, Text
from noonmark.source.impl import postgres
from noonmark.source.impl.file_forms import Parquet
from noonmark.source.impl.file_guard import Guard
from noonmark.source.impl.files import Files, of_lines
from noonmark.sql.ir import relation as r
from noonmark.sql.rules import simplify


def view_definition(catalog: Catalog, item: Item) -> Definition:
    """What Compute maintains for a materialized view or an index."""
    planned = view_relation(catalog, item)
    relation = simplify(planned.query.relation)
    key = item.key if item.kind == "index" else ()
    written = planned.query.relation
    grown = frozenset(
        each.collection
        for each in catalog.by_number.values()
        if _only_grows(each) and each.collection in r.scans(relation)
    )
    text = item.definition["query"]
    return Definition(item.collection, relation, text, key, written, growing=grown)


def _only_grows(item: Item) -> bool:
    """Whether rows only come into a relation: records of a topic that are rows, and stay."""
    is_topic = item.kind == "source" and item.definition.get("upstream") == "kafka"
    return is_topic and item.definition["envelope"] == "NONE"


# -- sources -------------------------------------------------------------------------------------


def source_of(definition: Mapping[str, Any], schema: Schema, guard: Guard) -> Source:
    """The source that an item remembers; `schema` has the columns of its rows, as written."""
    if definition["upstream"] == "generator":
        return generator(definition["kind"], definition["options"], definition["start_ms"])
    if definition["format"]["kind"] == "parquet":
        return Files(definition["pattern"], Parquet(schema), guard=guard)
    blank_is_data = definition["format"]["kind"] in ("text", "bytes")
    return of_lines(definition["pattern"], skip_blank=not blank_is_data, guard=guard)


def feeds_of(catalog: Catalog, item: Item, source: Source) -> tuple[Feed, ...]:
    """What becomes of the outputs of a source's item."""
    parts = [each for each in catalog.parts_of(item.number) if each.kind == "subsource"]
    if item.definition["upstream"] == "postgres":
        assert isinstance(source, postgres.Postgres)
        by_output = {each.definition["output"]: each.collection for each in parts}
        # Those that are read beside, and not yet what their readers see.
        by_output |= {
            each["output"]: each["staging"] for each in item.definition.get("pending", ())
        }
        return tuple(postgres_table(source, at, by_output[at]) for at in sorted(by_output))
    if item.definition["upstream"] == "kafka":
        from noonmark.adapter.upstream.topic import topic_feed  # door: it uses this module

        return (topic_feed(catalog, source, item.collection, item.definition),)
    if item.definition["upstream"] == "generator":
        if not item.is_stored:
            return tuple(
                typed(source, each.definition["output"], each.collection) for each in parts
            )
        return (typed(source, 0, item.collection),)
    return (file_feed(source, item.collection, item.definition),)


def file_feed(source: Source, collection: str, definition: Mapping[str, Any]) -> Feed:
    """The feed of files: its format, INCLUDE and envelope."""
    if source.outputs[0].schema is not None:
        return typed(source, 0, collection)
    return raw(
        source,
        0,
        collection,
        format_of(definition["format"], Schema.from_wire(definition["columns"])),
        include=tuple(Include(*each) for each in definition["include"]),
        envelope=definition["envelope"],
        key=tuple(definition["key"]),
    )


def format_of(definition: Mapping[str, Any], columns: Schema) -> Format:
    """A format over the columns that were written; without columns it has its own."""
    kind = definition["kind"]
    if kind == "json":
        return Json(columns) if columns.columns else Json()
    if kind == "csv":
        return Csv(columns, definition.get("delimiter", ","), bool(definition.get("header")))
    if kind == "text":
        return Text(columns) if columns.columns else Text()
    if kind == "bytes":
        return Bytes(columns) if columns.columns else Bytes()
    raise Unsupported(f"FORMAT {kind.upper()} is not supported here")
