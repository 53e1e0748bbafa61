"""Numbers as PostgreSQL 16 and later write them: ``1_000``, ``0x1F``, ``0o17``, ``0b101``.

sqlglot ends a number at the first character that it does not expect, and takes the rest for a name;
behind an exponent it takes a sign, and what follows, as its: ``1e3+1``. So such numbers go
to it as names of the same length, and are numbers again among its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot.tokenizer_core import Token, TokenType

from noonmark.errors import InvalidSyntax
from noonmark.sql.lexer import tokens_of

_DIGITS = r"[0-9](?:_?[0-9])*"
_PLAIN = re.compile(
    rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII
)
_BASES = {
    "x": (16, re.compile(r"0[xX](?:_?[0-9a-fA-F])+")),
    "o": (8, re.compile(r"0[oO](?:_?[0-7])+")),
    "b": (2, re.compile(r"0[bB](?:_?[01])+")),
}
#: A number with a letter or an underscore, wherever it stands: most texts have none.
_SUSPECT = re.compile(r"(?<![\w$])\.?[0-9][0-9.]*[^\W\d]")
_EXPONENT = re.compile(r"[eE]")
_MARK = "\ue001"


def marked(text: str) -> tuple[str, dict[int, str]]:
    """The text with marks for the numbers that sqlglot does not know, and those by their places.

    Raises:
        InvalidSyntax: a number that ends in what is no part of one.
    """
    if _SUSPECT.search(text) is None:
        return text, {}
    found: dict[int, str] = {}
    pieces, at = [], 0
    for token in tokens_of(text):
        if token.kind != "number" or (token.value.isascii() and token.value.isdigit()):
            continue
        number = _decimal(token.value, token.start)
        if number != token.value or _EXPONENT.search(token.value):
            found[token.start] = number
            pieces += [text[at : token.start], _MARK * (token.end - token.start)]
            at = token.end
    return "".join([*pieces, text[at:]]), found


def _decimal(written: str, start: int) -> str:
    base, form = _BASES.get(written[1:2].lower(), (10, _PLAIN))
    if form.fullmatch(written) is None:
        raise InvalidSyntax(
            f'trailing junk after numeric literal at or near "{written}"', position=start + 1
        )
    digits = written.replace("_", "")
    return digits if base == 10 else str(int(digits, base))


def unmark(tokens: Iterable[Token], numbers: dict[int, str]) -> None:
    """Make numbers of the tokens that stand for one."""
    for token in tokens:
        if token.start in numbers:
            token.token_type, token.text = TokenType.NUMBER, numbers[token.start]
