"""FROM WEBHOOK: whoever posts to a source's address writes a row, durable before the answer.

A webhook is written as a table is, at the time of its commit; so it has no offsets, no progress and
no errors: what cannot be read is refused, and the one who posted knows.

    BODY FORMAT JSON         the body is a document: `body jsonb`, or the columns that were written
    BODY FORMAT TEXT, BYTES  the body as it is: `body text`, `body bytea`
    INCLUDE HEADERS          `headers jsonb`, names in lower case

With a signature the body must come with its HMAC-SHA256 under a shared secret, in hex or base64,
bare or behind ``sha256=``:

    FROM WEBHOOK (SIGNATURE SECRET s, SIGNATURE HEADER 'x-signature') BODY FORMAT JSON
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.run.ddl import columns_of
from noonmark.adapter.run.ddl_common import refuse_options
from noonmark.adapter.upstream.secret import unseal
from noonmark.errors import (
    BadCopyData,
    InvalidPassword,
    InvalidValue,
    UndefinedObject,
    UndefinedTable,
    Unsupported,
)
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array
from noonmark.rows.jsonb import canonical
from noonmark.rows.schema import Column, Schema
from noonmark.source.format.decode import Format
from noonmark.source.format.json import Json
from noonmark.source.format.plain import Bytes, Text
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

_BODIES: dict[str, t.SqlType] = {"json": t.Jsonb(), "text": t.Text(), "bytes": t.Bytea()}
_OPTIONS = ("signature", "signature_header")
_PREFIX = "sha256="


def webhook_definition(catalog: Catalog, statement: st.CreateSource) -> dict[str, Any]:
    """What a webhook remembers, and its columns."""
    upstream = statement.upstream
    assert isinstance(upstream, st.Webhook)
    refuse_options("WEBHOOK", upstream.options, _OPTIONS)
    kind = None if statement.format is None else statement.format.kind
    if kind not in _BODIES:
        raise InvalidValue("a source FROM WEBHOOK needs BODY FORMAT JSON, TEXT or BYTES")
    if statement.envelope not in (None, "none") or statement.tables or statement.key_format:
        raise Unsupported("a webhook has neither ENVELOPE, KEY FORMAT nor tables")
    if statement.columns and kind != "json":
        raise Unsupported("only BODY FORMAT JSON takes columns")
    columns = columns_of(statement.columns or (), statement.key)
    if not columns.columns:
        columns = Schema((Column("body", _BODIES[kind], nullable=False),))
    included = [name for what, name in statement.include if what == "headers"]
    if len(included) < len(statement.include):
        raise Unsupported("a webhook can INCLUDE HEADERS, and nothing else")
    return {
        "upstream": "webhook",
        "format": {"kind": kind},
        "whole": not statement.columns,
        "columns": columns.to_wire(),
        "headers": included[:1],
        **_signature(catalog, upstream.options),
    }


def _signature(catalog: Catalog, options: Mapping[str, Any]) -> dict[str, Any]:
    given = options.get("signature")
    if given is None:
        return {}
    if not isinstance(given, st.SecretRef):
        raise InvalidValue("SIGNATURE takes a secret", hint="Say SIGNATURE SECRET s.")
    secret = catalog.find(given.name.parts)
    if secret is None or secret.kind != "secret":
        raise UndefinedObject(f'secret "{given.name}" does not exist', position=given.name.position)
    header = str(options.get("signature_header", "x-signature")).lower()
    return {"secret": secret.number, "header": header}


def webhook_schema(definition: Mapping[str, Any]) -> Schema:
    """The columns of its collection."""
    headers = tuple(Column(name, t.Jsonb(), nullable=False) for name in definition["headers"])
    return Schema((*Schema.from_wire(definition["columns"]).columns, *headers))


async def receive(database: Database, name: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Take one post; returns when it is durable.

    Raises:
        UndefinedTable: no webhook has the name.
        InvalidPassword: the signature is not that of the body.
        BadCopyData: the body cannot be read.
    """
    item = database.catalog.find(tuple(name.split(".")))
    if item is None or item.definition.get("upstream") != "webhook":
        raise UndefinedTable(f'webhook "{name}" does not exist')
    known = {key.lower(): value for key, value in headers.items()}
    _check(database.catalog, item, body, known)
    row = _row(item.definition, body)
    if item.definition["headers"]:
        row = (*row, canonical(known))
    await database.tables.commit({item.collection: [(row, 1)]})


def _check(catalog: Catalog, item: Item, body: bytes, headers: Mapping[str, str]) -> None:
    if "secret" not in item.definition:
        return
    secret = catalog.by_number[item.definition["secret"]]
    key = unseal(secret.definition["sealed"], secret.name).encode()
    digest = hmac.digest(key, body, hashlib.sha256)
    said = headers.get(item.definition["header"], "").removeprefix(_PREFIX).encode()
    right = (digest.hex().encode(), base64.b64encode(digest))
    if not any(hmac.compare_digest(said, each) for each in right):
        raise InvalidPassword("the signature is not that of the body")


def _row(definition: Mapping[str, Any], body: bytes) -> tuple[Any, ...]:
    form = _format(definition)
    parsed = form.parse(pa.array([body], pa.binary()))
    if parsed.reasons:
        raise BadCopyData(f"the body cannot be read: {parsed.reasons[0]}")
    row = tuple(
        from_array(array, column.type)[0]
        for array, column in zip(parsed.columns, form.schema.columns, strict=True)
    )
    for column, value in zip(form.schema.columns, row, strict=True):
        if value is None and not column.nullable:
            raise BadCopyData(f'the body cannot be read: column "{column.name}" is NULL')
    return row


def _format(definition: Mapping[str, Any]) -> Format:
    columns = Schema.from_wire(definition["columns"])
    if definition["format"]["kind"] == "json":
        return Json(columns, whole=definition["whole"])
    return (Text if definition["format"]["kind"] == "text" else Bytes)(columns)
