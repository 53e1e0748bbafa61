"""WITH that writes: in front of INSERT, UPDATE, DELETE and MERGE, and with these in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from noonmark.errors import InvalidSyntax, Unsupported
from noonmark.sql import dialect
from noonmark.sql.lexer import Token
from noonmark.sql.statement import merge, read, write
from noonmark.sql.statement.base import Statement
from noonmark.sql.statement.reader import Reader

#: What begins a statement that writes.
_WRITES = {"insert": write.insert, "update": write.update, "delete": write.delete,
           "merge": merge.merge}  # fmt: skip
_REST = ("search", "cycle")


@dataclass(frozen=True)
class Part:
    """One name of WITH: a query, as ``SELECT *`` from it, or a statement that writes."""

    name: str
    position: int
    columns: tuple[str, ...] = ()
    query: exp.Expr | None = field(default=None, compare=False)
    statement: Statement | None = None


@dataclass(frozen=True)
class WithWrites(Statement):
    """WITH parts statement, where one of them writes; `text` is all of it."""

    parts: tuple[Part, ...]
    main: Statement
    text: str


def with_writes(reader: Reader) -> WithWrites | None:
    """A WITH that writes, at the next token; None, and nothing taken, where it does not."""
    start = reader.at
    if not reader.accept("with") or reader.is_next("mutually"):
        reader.at = start
        return None
    recursive = reader.accept("recursive")
    found: list[tuple[int, int, int, str, tuple[str, ...]]] = []
    while True:
        first = reader.at
        if reader.token.kind not in ("word", "quoted"):
            break
        name = reader.identifier()
        columns = reader.names_in_parens() if reader.is_next("(") else ()
        if not reader.accept("as"):
            break
        _ = reader.accept("materialized") or reader.accept("not", "materialized")
        if not reader.accept("("):
            break
        begin, end = reader.skip_to()
        if not reader.accept(")") or reader.token.value in _REST:
            break
        found.append((first, begin, end, name, columns))
        if not reader.accept(","):
            break
    writes = [each for each in found if _head(reader, each[1]) in _WRITES]
    if not found or not (writes or _head(reader, reader.at) in _WRITES):
        reader.at = start
        return None
    parts = tuple(_part(reader, each, recursive=recursive) for each in found)
    _refuse_twice(parts)
    main = _statement(reader, reader.at, len(reader.tokens) - 1)
    text = reader.text[reader.tokens[start].start : reader.tokens[-2].end]
    reader.at = len(reader.tokens) - 1
    return WithWrites(parts, main, text)


def _head(reader: Reader, at: int) -> str:
    token = reader.tokens[at]
    return token.value if token.kind == "word" else ""


def _part(
    reader: Reader, found: tuple[int, int, int, str, tuple[str, ...]], *, recursive: bool
) -> Part:
    first, begin, end, name, columns = found
    position = reader.tokens[first].start + 1
    _refuse_nested(reader, begin, end)
    if _head(reader, begin) in _WRITES:
        return Part(name, position, columns, statement=_statement(reader, begin, end))
    # Behind the body is its bracket.
    text, offset = reader.slice(first, end + 1)
    head = "WITH RECURSIVE " if recursive else "WITH "
    tail = f' SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"'
    return Part(name, position, columns, dialect.read(head + text + tail, offset - len(head)))


def _statement(reader: Reader, begin: int, end: int) -> Statement:
    place = reader.tokens[end].start
    tokens = [*reader.tokens[begin:end], Token("end", "", place, place)]
    inner = Reader(reader.text, tokens)
    head = _head(inner, 0)
    if head in _WRITES:
        inner.take()
        made = _WRITES[head](inner)
    else:
        made = read.select(inner)
    inner.finish()
    return made


def _refuse_nested(reader: Reader, begin: int, end: int) -> None:
    """A statement that writes stands at the top."""
    tokens = reader.tokens[begin:end]
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        opens = one.kind == two.kind == "word" or one.value == "as"
        if one.value == "as" and two.value == "(" and three.value in _WRITES and opens:
            raise Unsupported(
                "WITH clause containing a data-modifying statement must be at the top level",
                position=three.start + 1,
            )


def _refuse_twice(parts: tuple[Part, ...]) -> None:
    names = [each.name for each in parts]
    for at, each in enumerate(parts):
        if each.name in names[:at]:
            raise DuplicateName(
                f'WITH query name "{each.name}" specified more than once', position=each.position
            )


class DuplicateName(InvalidSyntax, id="duplicate_with_name", sqlstate="42712"):
    """Two queries of WITH of one name."""
