"""What an HTTP client asks for, read strictly.

    {"query": "select 1; select 2"}                                  a text of statements
    {"queries": [{"query": "select $1", "params": ["1"]}, ...]}      one statement each, with values

A parameter is PostgreSQL's text in a string, or null; numbers and booleans stand for their text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from noonmark.adapter.contract import Prepared, Session
from noonmark.errors import InvalidSyntax, InvalidValue, ProtocolViolation
from noonmark.rows.pg.text import parse_value
from noonmark.serve.pgwire.codec import time_zone
from noonmark.serve.placed import placed

BODY_BYTES_MAX = 16 << 20

Scalar = str | int | float | bool | None


class One(msgspec.Struct, frozen=True):
    """One statement and the values of its parameters."""

    query: str
    params: list[Scalar] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class Todo:
    """A statement to run, its values, and where it begins in the text that was sent."""

    query: str
    params: list[Scalar]
    at: int = 0


class Request(msgspec.Struct, frozen=True):
    """Either a text of statements, or statements one by one."""

    query: str | None = None
    queries: list[One] | None = None

    def __post_init__(self) -> None:
        if (self.query is None) == (self.queries is None):
            raise ValueError("give either query or queries")


_DECODER = msgspec.json.Decoder(Request)


def parse_request(body: bytes | str) -> Request:
    """The request that a body spells.

    Raises:
        ProtocolViolation: it spells none.
    """
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolViolation(
            "the request is not understood",
            detail=str(error),
            hint='Send JSON such as {"query": "select 1"}.',
        ) from None


async def statements(session: Session, request: Request) -> list[Todo]:
    """The statements to run, one by one."""
    found: list[Todo] = []
    if request.query is not None:
        pieces = await session.split(request.query)
        return [Todo(text, [], at) for at, text in placed(request.query, pieces)]
    for one in request.queries or ():
        texts = await session.split(one.query)
        if len(texts) > 1:
            raise InvalidSyntax("a query with parameters is one statement")
        found += [Todo(text, one.params, at) for at, text in placed(one.query, texts)]
    return found


def parameters(prepared: Prepared, given: list[Scalar], session: Session) -> list[Any]:
    """The values of a statement's parameters."""
    if len(given) != len(prepared.parameters):
        raise ProtocolViolation(
            f"the statement takes {len(prepared.parameters)} parameters, {len(given)} were given"
        )
    zone = time_zone(session.settings.get("TimeZone"))
    found: list[Any] = []
    for number, (value, sql_type) in enumerate(zip(given, prepared.parameters, strict=True), 1):
        try:
            found.append(None if value is None else parse_value(_text(value), sql_type, zone))
        except InvalidValue as error:
            raise InvalidValue(
                error.message, detail=f"Parameter ${number} is of type {sql_type}.", hint=error.hint
            ) from None
    return found


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
