"""Tokens, as PostgreSQL divides a text: words, quoted names, strings, numbers, parameters, signs.

Law (cover): tokens do not overlap and come in the order of the text; what stands between two of
them is white space or a comment. So a text can be cut at any token and the pieces mean the same.
A number goes as far as letters and digits do: whether it is one, `noonmark.sql.numbers` says.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from noonmark.errors import InvalidSyntax
from noonmark.loops import WORKING
from noonmark.sql.turns import WAITING, pass_on

Kind = Literal["word", "quoted", "string", "number", "parameter", "sign", "end"]

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<estring>[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<string>(?:[bBxX]|[uU]&)?'(?:[^']|'')*')
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")+")
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<parameter>\$\d+)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>(?:[0-9](?:_?[0-9])*\.?(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)
        (?:[eE][+-]?[0-9](?:_?[0-9])*)?[\w$]*)
    | (?P<sign>::|:=|=>|<=|>=|<>|!=|\|\||->>|->|\#>>|\#>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Token(NamedTuple):
    """One token at ``text[start:end]``.

    `value` is what it stands for: a word in lower case, a quoted name without its quotes, the
    characters of a string, everything else as written.
    """

    kind: Kind
    value: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """All tokens, and one of kind "end" behind the last.

    Raises:
        InvalidSyntax: a string, a quoted name or a comment that does not end.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if WAITING or WORKING:
            pass_on()
        match = _TOKEN.match(text, at)
        assert match is not None, "the last alternative takes any character"
        kind = str(match.lastgroup)
        end = match.end()
        if kind == "comment":
            end = _comment_end(text, at)
        elif kind == "dollar":
            end = _dollar_end(text, at, match[0])
            tokens.append(Token("string", text[match.end() : end - len(match[0])], at, end))
        elif kind != "space":
            tokens.append(_token(kind, match[0], at, end))
        at = end
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _token(kind: str, raw: str, start: int, end: int) -> Token:
    match kind:
        case "word":
            return Token("word", raw.lower(), start, end)
        case "quoted":
            return Token("quoted", raw[raw.index('"') + 1 : -1].replace('""', '"'), start, end)
        case "string":
            return Token("string", raw[raw.index("'") + 1 : -1].replace("''", "'"), start, end)
        case "estring":
            return Token("string", _unescape(raw[2:-1]), start, end)
        case "number":
            return Token("number", raw, start, end)
        case "parameter":
            return Token("parameter", raw, start, end)
    if raw in ("'", '"'):
        what = "quoted string" if raw == "'" else "quoted identifier"
        raise InvalidSyntax(f"unterminated {what}", position=start + 1)
    return Token("sign", raw, start, end)


def _unescape(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8))
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, body.replace("''", "\\'"))


def _comment_end(text: str, start: int) -> int:
    """Comments nest."""
    depth, at = 0, start
    while True:
        match = _COMMENT.search(text, at)
        if match is None:
            raise InvalidSyntax("unterminated /* comment", position=start + 1)
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
        if depth == 0:
            return at


def _dollar_end(text: str, start: int, tag: str) -> int:
    found = text.find(tag, start + len(tag))
    if found < 0:
        raise InvalidSyntax("unterminated dollar-quoted string", position=start + 1)
    return found + len(tag)
