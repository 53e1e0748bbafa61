"""``WITH MUTUALLY RECURSIVE name (column type, ...) AS (...)``: a text that sqlglot can read.

sqlglot knows WITH RECURSIVE, whose columns have no types. So the word MUTUALLY, the options and the
types are overwritten with blanks, which moves nothing, and what they said is kept beside the text:
for each name, by the place where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.errors import InvalidSyntax, InvalidValue, NoonmarkError
from noonmark.rows.types import SqlType, parse_type
from noonmark.sql.lexer import Token, tokens_of


@dataclass(frozen=True)
class Declared:
    """What one name of WITH MUTUALLY RECURSIVE says of itself, and its clause of all names.

    Attributes:
        types: of the columns.
        limit: after how many rounds it ends; None for never.
        returns: whether it ends with what there is then; else with an error.
    """

    types: tuple[SqlType, ...]
    limit: int | None
    returns: bool = False


def without_types(text: str) -> tuple[str, dict[int, Declared]]:
    """The text as WITH RECURSIVE, and what was declared, by the place of the name from 0."""
    if "mutually" not in text.lower():
        return text, {}
    reading = _Reading(text)
    reading.read()
    return "".join(reading.characters), reading.declared


class _Reading:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.characters = list(text)
        self.declared: dict[int, Declared] = {}
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def is_word(self, word: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.kind == "word" and token.value == word

    def is_sign(self, sign: str) -> bool:
        return self.token.kind == "sign" and self.token.value == sign

    def invalid(self) -> InvalidSyntax:
        near = self.text[self.token.start : self.token.end]
        shown = f'at or near "{near}"' if near else "at end of input"
        return InvalidSyntax(f"syntax error {shown}", position=self.token.start + 1)

    def expect(self, sign: str) -> None:
        if not self.is_sign(sign):
            raise self.invalid()
        self.at += 1

    def blank(self, first: int, last: int) -> None:
        """Overwrite the tokens from first to before last."""
        for at in range(self.tokens[first].start, self.tokens[last - 1].end):
            self.characters[at] = " "

    def read(self) -> None:
        """Every WITH MUTUALLY RECURSIVE, also inside of others."""
        while self.token.kind != "end":
            if (
                self.is_word("with")
                and self.is_word("mutually", 1)
                and self.is_word("recursive", 2)
            ):
                self.blank(self.at + 1, self.at + 2)
                self.at += 3
                self.bindings(*self.limit())
            else:
                self.at += 1

    def limit(self) -> tuple[int | None, bool]:
        """``([{ERROR | RETURN} AT] RECURSION LIMIT n)``: n, and whether it returns then."""
        if not self.is_sign("("):
            return None, False
        start = self.at
        self.at += 1
        returns, errs = self.is_word("return"), self.is_word("error")
        stated = ("return" if returns else "error", "at") if returns or errs else ()
        for word in (*stated, "recursion", "limit"):
            if not self.is_word(word):
                raise self.invalid()
            self.at += 1
        if self.token.kind != "number" or not self.token.value.isdigit():
            raise self.invalid()
        found = int(self.token.value)
        if not found:
            raise InvalidValue(
                "RECURSION LIMIT must be greater than 0", position=self.token.start + 1
            )
        self.at += 1
        self.expect(")")
        self.blank(start, self.at)
        return found, returns

    def bindings(self, limit: int | None, returns: bool) -> None:
        """The names, up to the query that uses them; the inside of each is read by `read`."""
        while True:
            if self.token.kind not in ("word", "quoted"):
                raise self.invalid()
            place = self.token.start
            self.at += 1
            self.declared[place] = Declared(self.columns(), limit, returns)
            if not self.is_word("as"):
                raise self.invalid()
            self.at += 1
            self.expect("(")
            self.inside()
            if not self.is_sign(","):
                return
            self.at += 1

    def columns(self) -> tuple[SqlType, ...]:
        self.expect("(")
        types: list[SqlType] = []
        while True:
            if self.token.kind not in ("word", "quoted"):
                raise self.invalid()
            self.at += 1
            types.append(self.type())
            if self.is_sign(")"):
                self.at += 1
                return tuple(types)
            self.expect(",")

    def type(self) -> SqlType:
        start, depth = self.at, 0
        while self.token.kind != "end" and (depth or not (self.is_sign(",") or self.is_sign(")"))):
            depth += self.is_sign("(") - self.is_sign(")")
            self.at += 1
        if start == self.at:
            raise self.invalid()
        first, last = self.tokens[start], self.tokens[self.at - 1]
        try:
            found = parse_type(self.text[first.start : last.end])
        except NoonmarkError as error:
            error.position = first.start + 1
            raise
        self.blank(start, self.at)
        return found

    def inside(self) -> None:
        """Up to behind the bracket that closes."""
        depth = 1
        while depth:
            if self.token.kind == "end":
                raise self.invalid()
            if (
                self.is_word("with")
                and self.is_word("mutually", 1)
                and self.is_word("recursive", 2)
            ):
                self.blank(self.at + 1, self.at + 2)
                self.at += 3
                self.bindings(*self.limit())
                continue
            depth += self.is_sign("(") - self.is_sign(")")
            self.at += 1
