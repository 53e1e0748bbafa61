"""The front door: a text to its statements.

Law (split): the texts of the statements, in order, are the text without the semicolons between
them and the white space around them. A semicolon inside a string, a quoted name or a comment
divides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from noonmark.errors import InvalidSyntax
from noonmark.sql.dialect import TEXT_LENGTH_MAX
from noonmark.sql.lexer import Token, tokens_of
from noonmark.sql.statement import block, create, manage, merge, read, role, session, write
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.literals import LiteralInsert, LiteralRows, literal_insert
from noonmark.sql.statement.reader import Reader
from noonmark.sql.statement.within import with_writes

_HEADS: dict[str, Callable[[Reader], s.Statement]] = {
    "create": create.create,
    "drop": manage.drop,
    "alter": manage.alter,
    "comment": manage.comment,
    "refresh": manage.refresh,
    "validate": manage.validate,
    "grant": role.grant,
    "revoke": role.revoke,
    "reassign": role.reassign,
    "subscribe": read.subscribe,
    "explain": read.explain,
    "audit": read.audit,
    "show": read.show,
    "insert": write.insert,
    "update": write.update,
    "delete": write.delete,
    "merge": merge.merge,
    "truncate": write.truncate,
    "lock": write.lock,
    "copy": write.copy,
    "set": session.set_variable,
    "reset": session.reset,
    "begin": session.begin,
    "start": session.start,
    "commit": session.commit,
    "end": session.commit,
    "rollback": session.rollback,
    "abort": session.rollback,
    "savepoint": session.savepoint,
    "release": session.release,
    "declare": session.declare,
    "fetch": session.fetch,
    "close": session.close,
    "prepare": session.prepare,
    "execute": session.execute,
    "deallocate": session.deallocate,
    "discard": session.discard,
    "listen": session.listen,
    "unlisten": session.unlisten,
    "notify": session.notify,
    "vacuum": session.vacuum,
    "analyze": session.analyze,
    "analyse": session.analyze,
    "checkpoint": session.checkpoint,
    "do": block.do,
}
_QUERIES = ("select", "with", "values", "table", "(")
_KEPT = "Compaction and statistics are kept by the server itself."
#: Statements of others, and what to do instead.
_REFUSED = {
    **dict.fromkeys(("cluster", "reindex"), _KEPT),
    "tail": "SUBSCRIBE tells a client what happens to a relation.",
    **dict.fromkeys(("call", "import", "inspect", "move", "security", "use")),
}


def parse_statements(text: str) -> tuple[s.Parsed, ...]:
    """The statements of a text; of an empty one, none.

    Raises:
        InvalidSyntax: text that is no statement; the error says where.
        Unsupported: a statement that means something which is not built, and says what.
    """
    found = literal_insert(text) if len(text) <= TEXT_LENGTH_MAX else None
    if found is not None:
        return (_parse_literals(text, found),)
    return tuple(_parse(text, tokens) for tokens in _split(text))


def split_statements(text: str) -> tuple[str, ...]:
    """The statements of a text, each as it is written.

    Raises:
        InvalidSyntax: a string, a quoted name or a comment that does not end.
    """
    found = literal_insert(text) if len(text) <= TEXT_LENGTH_MAX else None
    if found is not None:
        return (text[found.start : found.end],)
    return tuple(text[tokens[0].start : tokens[-2].end] for tokens in _split(text))


def _split(text: str) -> list[list[Token]]:
    """The tokens of each statement, with an end behind them."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidSyntax(f"the text is longer than {TEXT_LENGTH_MAX} characters")
    if "\0" in text:
        raise InvalidSyntax("a statement cannot hold a NUL character")
    statements: list[list[Token]] = []
    current: list[Token] = []
    for token in tokens_of(text):
        last = token.kind == "end"
        if last or (token.kind == "sign" and token.value == ";"):
            if current:
                end = current[-1].end
                statements.append([*current, Token("end", "", end, end)])
            current = []
        else:
            current.append(token)
    return statements


def _parse(text: str, tokens: list[Token]) -> s.Parsed:
    reader = Reader(text, tokens)
    statement = statement_of(reader)
    reader.finish()
    return s.Parsed(statement, text[tokens[0].start : tokens[-2].end], tokens[0].start + 1)


def _parse_literals(text: str, found: LiteralInsert) -> s.Parsed:
    """The statement by its head and its first row; the other rows are literals like those."""
    head = " " * found.start + text[found.start : found.first_end]
    made = _parse(head, _split(head)[0]).statement
    assert isinstance(made, s.Insert)
    assert made.query is not None
    whole = text[found.start : found.end]
    rows = LiteralRows(whole, made.query.position, found.start, found.cells)
    return s.Parsed(replace(made, query=rows, text=whole), whole, found.start + 1)


def statement_of(reader: Reader) -> s.Statement:
    """The statement that the rest of the tokens are."""
    head = reader.token
    if head.kind in ("word", "sign") and head.value in _QUERIES:
        if head.value == "with" and (writes := with_writes(reader)) is not None:
            return writes
        return read.select_into(reader) or read.select(reader)
    parser = _HEADS.get(head.value) if head.kind == "word" else None
    if parser is None:
        if head.kind == "word" and head.value in _REFUSED:
            raise reader.unsupported(head.value.upper(), _REFUSED[head.value])
        raise reader.invalid()
    # What was read of a statement inside another ends where the other ends.
    inner = Reader(reader.text, reader.tokens[reader.at :])
    inner.take()
    result = parser(inner)
    reader.at += inner.at
    return result
