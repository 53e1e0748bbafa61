"""What binds first: PostgreSQL's precedence, where sqlglot's is another.

From loose to tight: OR; AND; NOT; IS; comparisons; BETWEEN, IN, LIKE; every operator that is not
named here; + and -; * / and %; ^; AT TIME ZONE; COLLATE; unary + and -. So ``x ~ 'a' || 'b'`` is
``(x ~ 'a') || 'b'``, and ``~ 5 + 1`` is ``~ (5 + 1)``. Comparisons, matches and IS DISTINCT FROM do
not associate: ``a < b < c`` is no expression.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_TESTS = (exp.NullSafeEQ, exp.NullSafeNEQ)
_MATCHES = (exp.Like, exp.ILike, exp.SimilarTo, exp.Between)
#: Operators that sqlglot has one step looser than the others.
_OPERATORS: dict[Any, type[exp.Expr]] = {
    TokenType.RLIKE: exp.RegexpLike,
    TokenType.IRLIKE: exp.RegexpILike,
    TokenType.AT_GT: exp.ArrayContainsAll,
    TokenType.LT_AT: exp.ArrayContainedBy,
    TokenType.DAMP: exp.ArrayOverlaps,
    TokenType.QMARK_AMP: exp.JSONBContainsAllTopKeys,
    TokenType.QMARK_PIPE: exp.JSONBContainsAnyTopKeys,
    TokenType.HASH_DASH: exp.JSONBDeleteAtPath,
    TokenType.AMP_LT: exp.ExtendsLeft,
    TokenType.AMP_GT: exp.ExtendsRight,
    TokenType.CARET_AT: exp.StartsWith,
    TokenType.LR_ARROW: exp.Distance,
}
#: Operators that sqlglot divides.
_DIVIDED = frozenset(
    ("<<=", ">>=", "~<~", "~<=~", "~>~", "~>=~",
     "##", "&<|", "<<|", "<^", ">^", "?#", "?-", "?-|", "?||", "@-@", "|&>", "|>>", "~=")
)  # fmt: skip
#: Operators in front of a shape, by what they are called.
_BEFORE = frozenset(("?-", "@-@"))
_SIGNS = frozenset("+-*/<>=~!@#%^&|?")


def one_sign(tokens: list[Any], text: str) -> list[Any]:
    """The tokens, with each operator that sqlglot divides as one of them.

    An operator goes as far as its signs do, with nothing between them.
    """
    found: list[Any] = []
    for token in tokens:
        last = found[-1] if found else None
        if last is not None and last.end + 1 == token.start and _SIGNS.issuperset(token.text):
            begin = len(found) - 1
            while begin > 0 and _joins(found[begin - 1], found[begin]):
                begin -= 1
            sign = text[found[begin].start : token.end + 1]
            behind = text[token.end + 1 : token.end + 2]
            if sign in _DIVIDED and behind not in _SIGNS:
                first = found[begin]
                first.token_type, first.text, first.end = TokenType.ADJACENT, sign, token.end
                del found[begin + 1 :]
                continue
        found.append(token)
    return found


def _joins(one: Any, other: Any) -> bool:
    return one.end + 1 == other.start and _SIGNS.issuperset(one.text)


_PATTERNS = (TokenType.RLIKE, TokenType.IRLIKE)


def _ends_open(tree: Any, kinds: tuple[type[exp.Expr], ...]) -> bool:
    """Whether a tree is one of these, and its last operand is not closed by a bracket."""
    if isinstance(tree, exp.Not | exp.Escape):
        return _ends_open(tree.this, kinds)
    return isinstance(tree, kinds) and not isinstance(
        tree.args.get("expression"), exp.Any | exp.All
    )


def _alone(parser: Any) -> Any:
    """The parser of a match, which is no operand of another one."""

    def act(self: Any, this: Any) -> Any:
        if _ends_open(this, _MATCHES):
            self.raise_error("Expected the end of a match", self._prev)
        return parser(self, this)

    return act


_MATCH_TOKENS = (TokenType.LIKE, TokenType.ILIKE, TokenType.SIMILAR_TO, TokenType.BETWEEN)


def _named(name: str) -> Any:
    """An operator in front, as a call by its sign."""

    def act(self: Any) -> Any:
        sign = name or self._prev.text
        if not name and sign not in _BEFORE:
            self.raise_error("Expected an operand", self._prev)
        return self.expression(exp.Anonymous(this=sign, expressions=[self._parse_term()]))

    return act


class Precedence(PostgresParser):
    """PostgreSQL's grammar of operators."""

    FACTOR: ClassVar[dict[Any, Any]] = {
        token: kind for token, kind in PostgresParser.FACTOR.items() if kind is not exp.Distance
    }

    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
        token: _alone(parser) if token in _MATCH_TOKENS else parser
        for token, parser in PostgresParser.RANGE_PARSERS.items()
        if token not in _OPERATORS
    }
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **PostgresParser.UNARY_PARSERS,
        TokenType.RLIKE: lambda self: self.expression(exp.BitwiseNot(this=self._parse_term())),
        TokenType.HASH: _named("#"),
        TokenType.QMARK_PIPE: _named("?|"),
        TokenType.DAT: _named("@@"),
        TokenType.ADJACENT: _named(""),
        TokenType.PARAMETER: lambda self: self.expression(
            exp.Anonymous(this="@", expressions=[self._parse_term()])
        ),
        TokenType.PLUS: lambda self: self.expression(
            exp.Anonymous(this="+", expressions=[self._parse_unary()])
        ),
    }

    def _build_predicate(
        self, klass: Any, this: Any, expression: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if klass in _COMPARISONS and isinstance(expression, _COMPARISONS):
            if not isinstance(expression.this, exp.Any | exp.All):
                self.raise_error("Expected the end of a comparison", self._prev)
            first = self._build_predicate(klass, this, expression.this)
            return self._build_predicate(type(expression), first, expression.expression)
        if klass in _COMPARISONS and _ends_open(this, _COMPARISONS):
            self.raise_error("Expected the end of a comparison", self._prev)
        if klass not in _COMPARISONS and _ends_open(this, _TESTS):
            self.raise_error("Expected the end of a test", self._prev)
        return super()._build_predicate(klass, this, expression, *args, **kwargs)

    def _parse_normalize(self) -> Any:
        """``normalize(x, NFC)``, whose form is a keyword."""
        tree = super()._parse_normalize()
        form = tree.args.get("form")
        if form and form.name.upper() not in ("NFC", "NFD", "NFKC", "NFKD"):
            self.raise_error("Expected a form of normalization", self._prev)
        return tree

    def _parse_bitwise(self) -> Any:
        """Operators of one precedence, from left to right."""
        this = self._parse_term()
        while True:
            negated = self._curr.text == "!" and self._next.token_type in _PATTERNS
            if negated:
                self._advance()
            if self._match_set(_OPERATORS):
                kind = _OPERATORS[self._prev.token_type]
                this = self.expression(kind(this=this, expression=self._parse_term()))
                this = self.expression(exp.Not(this=this)) if negated else this
            elif self._match(TokenType.ADJACENT):
                name = self._prev.text
                parts = [this, self._parse_term()]
                this = self.expression(exp.Anonymous(this=name, expressions=parts))
            elif self._match_set(self.BITWISE):
                kind = self.BITWISE[self._prev.token_type]
                this = self.expression(kind(this=this, expression=self._parse_term()))
            elif self._match(TokenType.DPIPE):
                this = self.expression(
                    exp.DPipe(this=this, expression=self._parse_term(), safe=False)
                )
            elif self._match_pair(TokenType.LT, TokenType.LT):
                this = self.expression(
                    exp.BitwiseLeftShift(this=this, expression=self._parse_term())
                )
            elif self._match_pair(TokenType.GT, TokenType.GT):
                this = self.expression(
                    exp.BitwiseRightShift(this=this, expression=self._parse_term())
                )
            elif self._match_set(self.JSON_OPERATORS):
                operator = self.JSON_OPERATORS[self._prev.token_type]
                this = operator(self, this, self._parse_term())
            else:
                return this
