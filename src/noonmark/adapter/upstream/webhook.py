"""FROM WEBHOOK: whoever posts to a source's address writes a row, durable before the answer.

A webhook is written as a table is, at the time of its commit; so it has no offsets, no progress and
no errors: what cannot be read is refused, and the one who posted knows.

    BODY FORMAT JSON         the body is a document: `body jsonb`, or the columns that were written
    BODY FORMAT TEXT, BYTES  the body as it is: `body text`, `body bytea`
    INCLUDE HEADERS          `headers jsonb`, names in lower case
    INCLUDE HEADER 'k' AS n  one of them, as text or BYTES; NULL without it

Who may post (``CHECK (true)`` is everybody, on purpose; without one of these, which superusers
alone may leave out, everybody but the page of another site in somebody's browser):

    CHECK (...)              a condition over headers, body and secrets: see `upstream.check`
    (SIGNATURE SECRET s, SIGNATURE HEADER 'x-signature')
                             the body's HMAC-SHA256 under a shared secret, in hex or base64, bare or
                             behind ``sha256=``
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.statement.ddl.columns import columns_of
from noonmark.adapter.statement.ddl.common import refuse_options
from noonmark.adapter.upstream.check import check, check_definition, check_secrets
from noonmark.adapter.upstream.secret import secret_of, unseal
from noonmark.errors import (
    BadCopyData,
    InvalidPassword,
    InvalidValue,
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
_INCLUDED = {
    "headers": Column("headers", t.Jsonb(), nullable=False),
    "header": Column("header", t.Text()),
    "header bytes": Column("header", t.Bytea()),
}


def webhook_definition(access: Access, statement: st.CreateSource) -> dict[str, Any]:
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
    if is_open(statement) and not is_superuser(access.catalog, access.role):
        raise InvalidValue(
            "a webhook without a CHECK takes posts of anybody",
            hint="Say what must hold, CHECK (...); CHECK (true) takes every post on purpose.",
        )
    columns = columns_of(statement.columns or (), statement.key)
    if not columns.columns:
        columns = Schema((Column("body", _BODIES[kind], nullable=False),))
    if any(each[0] not in _INCLUDED for each in statement.include):
        raise Unsupported("a webhook can INCLUDE HEADERS and HEADER, and nothing else")
    return {
        "upstream": "webhook",
        "format": {"kind": kind},
        "whole": not statement.columns,
        "columns": columns.to_wire(),
        "include": [list(each) for each in statement.include],
        "check": None if statement.check is None else check_definition(access, statement.check),
        **_signature(access, upstream.options),
    }


def is_open(statement: st.CreateSource) -> bool:
    """Whether a webhook says nothing of who may post to it."""
    upstream = statement.upstream
    assert isinstance(upstream, st.Webhook)
    return statement.check is None and "signature" not in upstream.options


def _signature(access: Access, options: Mapping[str, Any]) -> dict[str, Any]:
    given = options.get("signature")
    if given is None:
        return {}
    if not isinstance(given, st.SecretRef):
        raise InvalidValue("SIGNATURE takes a secret", hint="Say SIGNATURE SECRET s.")
    secret = secret_of(access, given.name)
    header = str(options.get("signature_header", "x-signature")).lower()
    return {"secret": secret.number, "header": header}


def webhook_schema(definition: Mapping[str, Any]) -> Schema:
    """The columns of its collection."""
    included = (replace(_INCLUDED[each[0]], name=each[1]) for each in _include(definition))
    return Schema((*Schema.from_wire(definition["columns"]).columns, *included))


def _include(definition: Mapping[str, Any]) -> list[list[str]]:
    """The INCLUDE columns; an older definition has only the name of that of all headers."""
    older = [["headers", name] for name in definition.get("headers", ())]
    return older + [list(each) for each in definition.get("include", ())]


def webhook_needs(definition: Mapping[str, Any]) -> tuple[int, ...]:
    """The secrets that it needs."""
    found = (definition["secret"],) if "secret" in definition else ()
    return (*found, *check_secrets(definition["check"]))


async def receive(database: Database, name: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Take one post; returns when it is durable.

    Raises:
        UndefinedTable: no webhook has the name.
        InvalidPassword: the signature is not that of the body, or CHECK does not hold.
        BadCopyData: the body cannot be read.
    """
    item = database.catalog.find(tuple(name.split(".")))
    if item is None or item.definition.get("upstream") != "webhook":
        raise UndefinedTable(f'webhook "{name}" does not exist')
    known = {key.lower(): value for key, value in headers.items()}
    _check_origin(item, known)
    _check_signature(database.catalog, item, body, known)
    if item.definition.get("check") is not None:
        asked = (item.definition["check"], body, known, database.clock.now_ms())
        await aside(len(body), check, database.catalog, *asked)
    row = (
        *_row(item.definition, body),
        *(_included(each, known) for each in _include(item.definition)),
    )
    await database.tables.commit({item.collection: [(row, 1)]})


def _included(column: Sequence[str], headers: Mapping[str, str]) -> Any:
    if column[0] == "headers":
        return canonical(dict(headers))
    value = headers.get(column[2].lower())
    return value if value is None or column[0] == "header" else value.encode("latin-1")


def _check_origin(item: Item, headers: Mapping[str, str]) -> None:
    """One that was made when CHECK could be left out takes nothing of another site's page."""
    checked = "secret" in item.definition or item.definition.get("check") is not None
    origin = headers.get("origin")
    if not checked and origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise InvalidPassword("posts of other sites' pages are refused")


def _check_signature(catalog: Catalog, item: Item, body: bytes, headers: Mapping[str, str]) -> None:
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
