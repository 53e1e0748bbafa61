"""One pass over the tokens of a statement: what every statement's parser reads with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from noonmark.errors import InvalidSyntax, InvalidValue, NoonmarkError, UndefinedObject, Unsupported
from noonmark.rows.types import Array, SqlType, parse_type
from noonmark.sql import dialect
from noonmark.sql.lexer import Token
from noonmark.sql.statement.base import Name, QueryText, ScalarText
from noonmark.sql.statement.named_types import NamedType

T = TypeVar("T")
_SELECT = "SELECT "


class Reader:
    """The tokens of one statement, and where in them the parser stands."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    # --- looking

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    @property
    def position(self) -> int:
        """Where the next token starts, from 1."""
        return self.token.start + 1

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.token.kind == "end"

    def is_next(self, *words: str) -> bool:
        """Whether the next tokens are these words or signs."""
        ahead = self.tokens[self.at : self.at + len(words)]
        found = [token.value for token in ahead if token.kind in ("word", "sign")]
        return found == [word.lower() for word in words]

    # --- taking

    def take(self) -> Token:
        """The next token, whatever it is."""
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words or signs if they are next, else nothing."""
        if not self.is_next(*words):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *choices: str) -> str | None:
        """Take the first of these (each one or more words) that is next."""
        for choice in choices:
            if self.accept(*choice.split()):
                return choice
        return None

    def expect(self, *words: str) -> None:
        """Take these words or signs."""
        for word in words:
            if not self.accept(word):
                raise self.invalid(f"expected {word.upper()}")

    def finish(self) -> None:
        """Nothing may be left."""
        if not self.ended:
            raise self.invalid()

    def identifier(self) -> str:
        """A name of one part."""
        token = self.token
        if token.kind not in ("word", "quoted"):
            raise self.invalid("expected a name")
        self.at += 1
        return token.value

    def name(self, parts_max: int = 3) -> Name:
        """A name of one to three parts."""
        position = self.position
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        if len(parts) > parts_max:
            raise InvalidSyntax(
                f"improper qualified name (too many dotted names): {'.'.join(parts)}",
                position=position,
            )
        return Name(tuple(parts), position)

    def string(self) -> str:
        """A quoted string."""
        if self.token.kind != "string":
            raise self.invalid("expected a quoted string")
        return self.take().value

    def integer(self) -> int:
        """A whole number, perhaps with a sign."""
        negative = self.accept("-")
        if self.token.kind != "number" or not self.token.value.isdigit():
            raise self.invalid("expected a whole number")
        value = int(self.take().value)
        return -value if negative else value

    def list_of(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more, between commas."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)

    def names_in_parens(self) -> tuple[str, ...]:
        """``(a, b)``."""
        self.expect("(")
        found = self.list_of(self.identifier)
        self.expect(")")
        return found

    def if_exists(self) -> bool:
        """``IF EXISTS``, if it is there."""
        return self.accept("if", "exists")

    def if_not_exists(self) -> bool:
        """``IF NOT EXISTS``, if it is there."""
        return self.accept("if", "not", "exists")

    # --- stretches of text

    def skip_to(self, *stops: str) -> tuple[int, int]:
        """Go on to the first of the stops outside brackets, or the end; the stretch passed.

        A stop is one or more words or signs. A closing bracket that was not opened always stops.
        CASE ... END is a bracket.
        """
        start, depth, cases = self.at, 0, 0
        while not self.ended:
            if self.token.kind == "word" and self.token.value == "case":
                cases += 1
            elif self.token.kind == "word" and self.token.value == "end" and cases:
                cases -= 1
            if depth == cases == 0 and any(self.is_next(*stop.split()) for stop in stops):
                break
            if self.token.kind == "sign":
                if self.token.value in "([":
                    depth += 1
                elif self.token.value in ")]":
                    if depth == 0:
                        break
                    depth -= 1
            self.at += 1
        return start, self.at

    def slice(self, start: int, end: int) -> tuple[str, int]:
        """The text of the tokens from start to before end, and its place from 0."""
        if start == end:
            raise self.invalid()
        first, last = self.tokens[start], self.tokens[end - 1]
        return self.text[first.start : last.end], first.start

    def query_between(self, start: int, end: int) -> QueryText:
        """The query that those tokens are."""
        text, offset = self.slice(start, end)
        tree = dialect.read(text, offset)
        if not isinstance(tree, exp.Query | exp.Values):
            raise Unsupported(f"{tree.key.upper()} is not a query", position=offset + 1)
        return QueryText(text, offset + 1, tree)

    def scalar_to(self, *stops: str) -> ScalarText:
        """The expression up to a stop."""
        start, end = self.skip_to(*stops)
        text, offset = self.slice(start, end)
        return ScalarText(text, offset + 1, dialect.read_scalar(text, offset))

    def order_to(self, *stops: str) -> ScalarText:
        """The item of ORDER BY up to a stop."""
        start, end = self.skip_to(*stops)
        text, offset = self.slice(start, end)
        return ScalarText(text, offset + 1, dialect.parse_order(text, offset))

    def select_list(self) -> tuple[exp.Expr, ...]:
        """The rest of the statement, as items of a select list."""
        text, offset = self.slice(*self.skip_to())
        tree = dialect.read(_SELECT + text, offset - len(_SELECT))
        if any(value for name, value in tree.args.items() if name not in ("kind", "expressions")):
            raise InvalidSyntax("syntax error in RETURNING", position=offset + 1)
        return tuple(tree.expressions)

    def type_to(self, *stops: str) -> SqlType:
        """The type that is spelled up to a stop; one that has only a name, where it is no other."""
        start, end = self.skip_to(*stops)
        text, offset = self.slice(start, end)
        try:
            return parse_type(text)
        except NoonmarkError as error:
            named = self._named_type(start, end)
            if named is not None and isinstance(error, UndefinedObject | InvalidValue):
                return named
            error.position = offset + 1
            raise

    def _named_type(self, start: int, end: int) -> SqlType | None:
        """``[schema.]name [[]]``, if that is all of it."""
        inner = Reader(self.text, [*self.tokens[start:end], self.tokens[-1]])
        try:
            name = inner.name()
            is_array = inner.accept("[")
            if is_array:
                _ = inner.is_next("]") or inner.integer()
                inner.expect("]")
        except InvalidSyntax:
            return None
        made = NamedType(name)
        return (Array(made) if is_array else made) if inner.ended else None

    # --- errors

    def invalid(self, detail: str | None = None) -> InvalidSyntax:
        """A syntax error at the next token."""
        if self.ended:
            return InvalidSyntax(
                "syntax error at end of input", detail=detail, position=self.position
            )
        near = self.text[self.token.start : self.token.end]
        return InvalidSyntax(
            f'syntax error at or near "{near}"', detail=detail, position=self.position
        )

    def unsupported(
        self, what: str, hint: str | None = None, position: int | None = None
    ) -> Unsupported:
        """A refusal by name, at the next token or where it is told."""
        return Unsupported(
            f"{what} is not supported", hint=hint, position=position or self.position
        )
