"""Statements as text, and scripts of statements run against a database: for cases that are read."""

from __future__ import annotations

import dataclasses
from typing import Any

from sqlglot import exp

from noonmark.adapter.contract import CopyOut, Done, Rows
from noonmark.adapter.session.session import AdapterSession
from noonmark.errors import NoonmarkError
from noonmark.rows.pg.text import format_value
from noonmark.rows.types import SqlType
from noonmark.sql.statement import parse_statements
from noonmark.sql.statement.base import Name, QueryText, ScalarText

_UNSHOWN = ("position", "text", "tree")


def shown(value: Any) -> str:
    """A statement, or a part of one, without what is as it is by default."""
    match value:
        case Name():
            return str(value)
        case QueryText():
            return f"[{value.text}] at {value.position}"
        case ScalarText():
            return f"[{value.text}] at {value.position}"
        case SqlType():
            return str(value)
        case exp.Expr():
            return f"[{value.sql(dialect='postgres')}]"
        case tuple() | list():
            return f"({', '.join(map(shown, value))})"
        case dict():
            return f"{{{', '.join(f'{k}: {shown(v)}' for k, v in value.items())}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    return repr(value)


def _fields(value: Any) -> str:
    parts = []
    for field in dataclasses.fields(value):
        now = getattr(value, field.name)
        factory = field.default_factory
        default = factory() if factory is not dataclasses.MISSING else field.default
        if field.name not in _UNSHOWN and now != default:
            parts.append(f"{field.name}={shown(now)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def told(error: NoonmarkError) -> str:
    """An error as a client is told."""
    where = f" at {error.position}" if error.position else ""
    return f"error {error.sqlstate}{where}: {error}"


def parsed(text: str) -> str:
    """What a text is read as, a line per statement."""
    try:
        return "\n".join(
            f"{one.position}: {shown(one.statement)}" for one in parse_statements(text)
        )
    except NoonmarkError as error:
        return told(error)


async def ran(session: AdapterSession, text: str) -> str:
    """What the statements of a text do, one after the other; an error ends them."""
    lines: list[str] = []
    for one in await session.split(text):
        try:
            outcome = await session.execute(await session.prepare(one))
        except NoonmarkError as error:
            lines.append(told(error))
            break
        match outcome:
            case Done():
                lines += [outcome.tag, *(f"{n.severity}: {n.message}" for n in outcome.notices)]
            case Rows() | CopyOut():
                lines.append(" | ".join(field.name for field in outcome.fields))
                async for chunk in outcome.chunks:
                    for row in chunk:
                        lines.append(
                            " | ".join(
                                "NULL" if value is None else format_value(value, field.type)
                                for value, field in zip(row, outcome.fields, strict=True)
                            )
                        )
    return "\n".join(lines)
