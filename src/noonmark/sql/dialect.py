"""The one door to sqlglot: text to its syntax tree, in PostgreSQL's dialect.

sqlglot reads many dialects and forgives much. Here functions stay calls by their own names (its
rewriting of functions between dialects is off), so that what a name means is decided by our table
alone; what it parses and we do not know is refused by the planner.

Positions are characters of the text, counted from 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from noonmark.errors import InvalidSyntax, InvalidText, InvalidValue, TooComplex
from noonmark.loops import WORKING
from noonmark.rows.coded.bits import digits
from noonmark.sql import gate, grammar, numbers
from noonmark.sql.lexer import tokens_of
from noonmark.sql.mutual import Declared, without_types
from noonmark.sql.precedence import Precedence, one_sign
from noonmark.sql.turns import WAITING, pass_on

TEXT_LENGTH_MAX = 1_000_000
#: Expressions and queries inside of each other; of a chain of AND, OR or UNION, all are one.
DEPTH_MAX = 2_000


_CONSTANT = "constant"
#: Where, in the meta of the first column of USING, the name of the merged columns is kept.
USING_ALIAS = "using_alias"


def _constant(tree: exp.Expr) -> exp.Expr:
    tree.meta[_CONSTANT] = True
    return tree


def _call(name: str) -> Any:
    return lambda self, left, right: self.expression(
        exp.Anonymous(this=name, expressions=[left, right])
    )


#: The ways to write a string.
_STRINGS = frozenset(
    (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING)
)
_TEXTS = (*_STRINGS, TokenType.IDENTIFIER)
#: What a name is that is no word of sqlglot's.
_NAMING = (TokenType.VAR, TokenType.IDENTIFIER)
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_SYNTAX = ("CAST", "EXTRACT", "NORMALIZE", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")


#: Words that begin or join something for sqlglot, and are names like others in PostgreSQL.
_NAMES = frozenset(
    (
        TokenType.ALTER, TokenType.BETWEEN, TokenType.DROP, TokenType.INSERT, TokenType.LOCK,
        TokenType.REVOKE, TokenType.ROLLBACK,
    )
)  # fmt: skip


class _Parser(Precedence):
    """PostgreSQL's grammar, with every function as a plain call."""

    ID_VAR_TOKENS: ClassVar[set[Any]] = {*PostgresParser.ID_VAR_TOKENS, *_NAMES}
    ALIAS_TOKENS: ClassVar[set[Any]] = {*PostgresParser.ALIAS_TOKENS, *_NAMES}
    TABLE_ALIAS_TOKENS: ClassVar[set[Any]] = {*PostgresParser.TABLE_ALIAS_TOKENS, *_NAMES}

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: PostgresParser.FUNCTION_PARSERS[name] for name in _SYNTAX
    }
    FUNC_TOKENS: ClassVar[set[Any]] = {*PostgresParser.FUNC_TOKENS, TokenType.OVERLAPS}
    LAMBDAS: ClassVar[dict[Any, Any]] = {
        TokenType.FARROW: lambda self, names: self.expression(
            exp.Kwarg(this=exp.var(names[0].name), expression=self._parse_disjunction())
        )
    }
    JSON_OPERATORS: ClassVar[dict[Any, Any]] = {
        TokenType.ARROW: _call("->"),
        TokenType.DARROW: _call("->>"),
        TokenType.HASH_ARROW: _call("#>"),
        TokenType.DHASH_ARROW: _call("#>>"),
        TokenType.PLACEHOLDER: _call("?"),
    }

    #: How many brackets are open: inside of those of ARRAY, others stand alone.
    _brackets = 0

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        """A type and a string are one literal: what follows is of that, not of the string.

        So ``float8 '1.5'::int`` casts a number; sqlglot's own casts the text.
        """
        start, word = self._index, self._curr.token_type
        if word in _NAMING and self._names_a_type():
            kind = self._parse_types()
            literal = self.expression(exp.Cast(this=self._parse_primary(), to=kind))
            return self._parse_column_ops(_constant(literal))
        if self._curr.text.upper() == "COLLATION" and self._match_text_seq("COLLATION", "FOR"):
            parts = [self._parse_wrapped(self._parse_disjunction)]
            return self.expression(exp.Anonymous(this="pg_collation_for", expressions=parts))
        if not fallback_to_identifier and word != TokenType.INTERVAL and word in self.TYPE_TOKENS:
            kind = self._parse_types(check_func=True, allow_identifiers=False)
            known = isinstance(kind, exp.DataType | exp.ObjectIdentifier)
            if known and self._curr and self._curr.token_type in _STRINGS:
                if kind.this == exp.DType.ARRAY:
                    self.raise_error("a literal of an array is written with ::")
                literal = self.expression(exp.Cast(this=self._parse_primary(), to=kind))
                return self._parse_column_ops(_constant(literal))
            self._retreat(start)
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _names_a_type(self) -> bool:
        """Whether a name, with its schema or not, stands before a string: ``cidr '...'``.

        That is a literal of that type, whoever made it; there is nothing else that it can be.
        """
        kinds = [each.token_type for each in self._tokens[self._index + 1 : self._index + 4]]
        if kinds[:1] == [TokenType.DOT]:
            kinds = kinds[2:]
        return bool(kinds) and kinds[0] in _STRINGS

    def _parse_primary(self) -> Any:
        """Strings on lines of their own, one after the other, are one string."""
        if WAITING or WORKING:
            pass_on()
        text = super()._parse_primary()
        if isinstance(text, exp.Literal):
            return _constant(text)
        if not isinstance(text, exp.Concat):
            return text
        count = len(text.expressions)
        strings = self._tokens[self._index - count : self._index]
        for one, other in pairwise(strings):
            if "\n" not in self.sql[one.end + 1 : other.start]:
                self.raise_error("Expected an operator", other)
        whole = exp.Literal.string("".join(str(each.this) for each in text.expressions))
        whole.meta["start"] = strings[0].start
        return _constant(whole)

    def _parse_bracket(self, this: Any = None) -> Any:
        """A constant takes no subscript without brackets around it; ``[1]`` alone is no array."""
        if self._curr is None or self._curr.text != "[":
            return super()._parse_bracket(this)
        if this is not None and this.meta.get(_CONSTANT):
            self.raise_error("Expected an operator")
        if this is None and not self._brackets:
            self.raise_error("Expected an operand")
        self._brackets += 1
        try:
            return super()._parse_bracket(this)
        finally:
            self._brackets -= 1

    def _parse_wrapped_select(self, table: bool = False) -> Any:
        """Also joins in parentheses whose first item is a function."""
        this = super()._parse_wrapped_select(table)
        if table and isinstance(this, exp.Unnest | exp.Lateral):
            this.set("joins", list(self._parse_joins()))
        return this

    def _parse_lateral(self) -> Any:
        """``LATERAL ROWS FROM (...)``: functions see what stands left of them in any case."""
        words = [each.text.upper() for each in self._tokens[self._index : self._index + 3]]
        if words == ["LATERAL", "ROWS", "FROM"]:
            self._advance()
            return None
        return super()._parse_lateral()

    def _parse_is(self, this: Any) -> Any:
        """Also ``IS [NOT] [NFC | ...] NORMALIZED``."""
        start = self._index
        negated = self._match(TokenType.NOT)
        form = self._prev.text.upper() if self._match_texts(_FORMS) else "NFC"
        if not self._match_text_seq("NORMALIZED"):
            self._retreat(start)
            return super()._parse_is(this)
        parts = [this, exp.Literal.string(form)]
        test = self.expression(exp.Anonymous(this="is_normalized", expressions=parts))
        return self.expression(exp.Not(this=test)) if negated else test

    def _parse_using_identifiers(self) -> Any:
        """``USING (a, b) [AS name]``; the name is kept with the first column."""
        found = super()._parse_using_identifiers()
        if found and self._match(TokenType.ALIAS):
            name = self._parse_id_var(any_token=False)
            if name is None:
                self.raise_error("Expected a name")
            else:
                quoted = name.args.get("quoted")
                found[0].meta[USING_ALIAS] = name.name if quoted else name.name.lower()
        return found

    def _parse_position(self, haystack_first: bool = False) -> Any:  # noqa: ARG002 - sqlglot's
        """``POSITION(x IN y)``; there is no other form."""
        part = self._parse_bitwise()
        if not self._match(TokenType.IN):
            self.raise_error("Expected IN")
        return self.expression(exp.StrPosition(this=self._parse_bitwise(), substr=part))

    def _parse_substring(self) -> Any:
        """Also ``SUBSTRING(x SIMILAR pattern ESCAPE escape)``."""
        start = self._index
        text = self._parse_bitwise()
        if not self._match_text_seq("SIMILAR"):
            self._retreat(start)
            return super()._parse_substring()
        pattern = self._parse_bitwise()
        if not self._match_text_seq("ESCAPE"):
            self.raise_error("Expected ESCAPE")
        parts = [text, pattern, self._parse_bitwise()]
        return self.expression(exp.Anonymous(this="substring", expressions=parts))

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        """Types, also arrays of those that are oids: sqlglot's own stops before the brackets."""
        if varying := self._parse_varying():
            return varying
        found = super()._parse_types(*args, **kwargs)
        if isinstance(found, exp.ObjectIdentifier) and self._match(TokenType.L_BRACKET):
            self._match(TokenType.R_BRACKET)
            array = exp.DataType(this=exp.DType.ARRAY, expressions=[found], nested=True)
            return self.expression(array)
        return found

    def _parse_varying(self) -> Any:
        """``bit varying [(n)]`` and ``varbit (n)``, which sqlglot reads as one word and more."""
        word, start = self._curr.text.upper() if self._curr else "", self._index
        if word == "BIT" and self._next and self._next.text.upper() == "VARYING":
            self._advance()
        elif word != "VARBIT":
            return None
        self._advance()
        length = ""
        if self._match(TokenType.L_PAREN):
            number = self._parse_number()
            if number is None or not self._match(TokenType.R_PAREN):
                self._retreat(start)
                return None
            length = f"({number.name})"
        kind: Any = exp.DataType(
            this=exp.DType.USERDEFINED, kind=exp.to_identifier(f"varbit{length}", quoted=False)
        )
        while self._match_pair(TokenType.L_BRACKET, TokenType.R_BRACKET):
            kind = exp.DataType(this=exp.DType.ARRAY, expressions=[kind], nested=True)
        return kind

    def _parse_interval(
        self,
        require_interval: bool = True,
        parse_function_unit: bool = True,  # noqa: ARG002 - sqlglot's signature
    ) -> Any:
        """``INTERVAL 'text' [unit [TO unit]]``, the text as it is: sqlglot's own drops parts."""
        start = self._index
        if not self._match(TokenType.INTERVAL) and require_interval:
            return None
        if not self._match(TokenType.STRING, advance=False):
            self._retreat(start)
            return None
        text = self._parse_primary()
        unit = None
        if self._curr and self._curr.text.upper() in _UNITS:
            unit = self._parse_var(any_token=True, upper=True)
            if self._match_text_seq("TO"):
                unit = exp.IntervalSpan(this=unit, expression=self._parse_var(any_token=True))
        return self.expression(exp.Interval(this=text, unit=unit))


class _Tokenizer(Postgres.Tokenizer):
    KEYWORDS: ClassVar[dict[str, Any]] = {
        word: kind
        for word, kind in Postgres.Tokenizer.KEYWORDS.items()
        if word not in grammar.FOREIGN_WORDS and word not in grammar.FOREIGN_SIGNS
    }


class Dialect(Postgres):
    """PostgreSQL as we read it."""

    INDEX_OFFSET = 0  # subscripts stay as they are written
    Parser = _Parser
    Tokenizer = _Tokenizer

    def tokenize(self, sql: str, dialect: Any = None) -> Any:
        """The tokens of sqlglot, and numbers as PostgreSQL has them."""
        plain, written = numbers.marked(sql)
        tokens = super().tokenize(plain, dialect)
        numbers.unmark(tokens, written)
        tokens = one_sign(tokens, plain)
        for token in tokens:
            if token.text in grammar.STRANGE and token.token_type not in _TEXTS:
                raise ParseError.new("", line=token.line, col=token.col, highlight=token.text)
        for sign, word in pairwise(tokens):
            # Behind @, which is an operator here, a word keeps its meaning.
            if sign.token_type == TokenType.PARAMETER and word.token_type == TokenType.VAR:
                known = self.tokenizer_class.KEYWORDS.get(word.text.upper())
                word.token_type = known or word.token_type
        return tokens


def parse(text: str, offset: int = 0) -> exp.Expr:
    """The syntax tree of exactly one statement.

    Its positions are those of a whole text in which this one starts after `offset` characters.

    Raises:
        InvalidSyntax: text that is no statement, or several.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidSyntax(f"the statement is longer than {TEXT_LENGTH_MAX} characters")
    if "\0" in text:
        raise InvalidSyntax("a statement cannot hold a NUL character")
    plain, declared = without_types(text)
    plain = _marked(plain)
    try:
        found = [tree for tree in sqlglot.parse(plain, dialect=Dialect) if tree is not None]
    except ParseError as error:
        raise _syntax_error(plain, error, offset) from None
    except RecursionError:
        raise TooComplex.of_statement() from None
    except TokenError as error:
        _check_bits(plain)
        raise InvalidSyntax(f"the statement cannot be read: {type(error).__name__}") from None
    if len(found) != 1:
        raise InvalidSyntax(f"expected one statement, found {len(found)}", position=offset + 1)
    for node in list(found[0].walk()):
        if declared and isinstance(node, exp.CTE):
            _declare(node, declared)
        if offset and "start" in node.meta:
            node.meta["start"] += offset
        _unmark(node)
    _note_positions(found[0])
    # Nobody here goes up a tree. Without the way up it is freed with its last user; else it would
    # be garbage for the collector, which everybody waits for.
    for node in list(found[0].walk()):
        node.parent = None
    if _depth(found[0]) > DEPTH_MAX:
        raise TooComplex.of_statement()
    return found[0]


def _check_bits(text: str) -> None:
    """Tell a string of bits with other digits from what cannot be read."""
    for token in tokens_of(text):
        mark = text[token.start : token.start + 1].lower()
        if token.kind == "string" and mark in ("b", "x"):
            try:
                digits(mark + token.value)
            except InvalidValue as error:
                raise InvalidText(error.message, position=token.start + 1) from None


def _depth(tree: exp.Expr) -> int:
    deepest, stack = 0, [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        for part in node.iter_expressions():
            chained = type(part) is type(node) and isinstance(node, _CHAINS)
            stack.append((part, depth if chained else depth + 1))
    return deepest


_CHAINS = (exp.And, exp.Or, exp.Union)


def parse_order(text: str, offset: int = 0) -> exp.Expr:
    """The syntax tree of one item of ORDER BY that stands after `offset` characters."""
    tree = parse(_ORDER + text, offset - len(_ORDER))
    order = tree.args.get("order")
    if order is None or len(order.expressions) != 1 or tree.args.get("limit"):
        raise InvalidSyntax("syntax error: expected one expression", position=offset + 1)
    item: exp.Expr = order.expressions[0]
    return item


def _declare(cte: exp.CTE, declared: dict[int, Declared]) -> None:
    """Give a name of WITH MUTUALLY RECURSIVE what it says of itself."""
    name = cte.args["alias"].this
    found = declared.get(name.meta.get("start", -1))
    if found is not None:
        cte.meta["declared"] = found


_MARK = "\ue000"
"""Stands for the $ of a parameter: sqlglot would begin a dollar-quoted string with it."""


def _marked(text: str) -> str:
    """The text, every $1 under a name of the same length that sqlglot reads as a column."""
    if "$" not in text:
        return text
    places = [token.start for token in tokens_of(text) if token.kind == "parameter"]
    pieces = [text[a + 1 : b] for a, b in pairwise([-1, *places, len(text)])]
    return _MARK.join(pieces)


def _unmark(node: exp.Expr) -> None:
    if not isinstance(node, exp.Identifier) or not str(node.this).startswith(_MARK):
        return
    column, number = node.parent, str(node.this)[1:]
    if not isinstance(column, exp.Column) or column.args.get("table") or not number.isdigit():
        raise InvalidSyntax(f'syntax error at or near "${number}"', position=position_of(node))
    parameter = exp.Parameter(this=exp.Literal.number(number))
    parameter.meta.update(node.meta)
    column.replace(parameter)


_SELECT, _ORDER = "SELECT ", "SELECT ORDER BY "


def read(text: str, offset: int = 0) -> exp.Expr:
    """The syntax tree of one statement that a client sends: PostgreSQL's grammar comes first."""
    gate.check(without_types(text)[0], offset)
    return _read_by_somebody(parse(text, offset))


def read_scalar(text: str, offset: int = 0) -> exp.Expr:
    """The syntax tree of one expression that a client sends; see `read`."""
    gate.check(_SELECT + text, offset - len(_SELECT))
    return _read_by_somebody(parse_scalar(text, offset))


def _read_by_somebody(tree: exp.Expr) -> exp.Expr:
    """The tree, if the planner reads every part of it."""
    for node in tree.walk():
        if fault := grammar.fault(node):
            raise type(fault)(fault.message, position=position_of(node))
    return tree


def parse_scalar(text: str, offset: int = 0) -> exp.Expr:
    """The syntax tree of one expression that stands after `offset` characters of a whole text."""
    tree = parse(_SELECT + text, offset - len(_SELECT))
    parts = [name for name, value in tree.args.items() if value]
    if not isinstance(tree, exp.Select) or parts != ["expressions"] or len(tree.expressions) != 1:
        raise InvalidSyntax("syntax error: expected one expression", position=offset + 1)
    scalar: exp.Expr = tree.expressions[0]
    return scalar


def _syntax_error(text: str, error: ParseError, offset: int) -> InvalidSyntax:
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    detail = str(first.get("description") or "")
    lacks = detail.startswith(("Required keyword", "Expecting", "Expected"))
    if lacks and not str(first.get("end_context") or "").strip():
        end = offset + len(text.rstrip()) + 1
        return InvalidSyntax("syntax error at end of input", position=end)
    near = str(first.get("highlight") or "").replace(_MARK, "$")
    line, column = first.get("line"), first.get("col")
    position = None
    if line and column:
        start = sum(len(each) + 1 for each in text.split("\n")[: line - 1])
        position = max(start + column - len(near) + 1 + offset, 1)
    message = f'syntax error at or near "{near}"' if near else "syntax error at end of input"
    shown = detail if detail and "sqlglot" not in detail else None
    return InvalidSyntax(message, position=position, detail=shown)


_FIRST = "first"
"""Where, in the meta of a node, the first place of its text is kept: trees are asked often."""


def _note_positions(tree: exp.Expr) -> None:
    """Keep the first place of every node, which is that of the first of its parts."""
    nodes = list(tree.walk(bfs=False))
    for node in reversed(nodes):  # parts before what they are parts of
        starts = [part.meta[_FIRST] for part in node.iter_expressions() if _FIRST in part.meta]
        if "start" in node.meta:
            starts.append(node.meta["start"])
        if starts:
            node.meta[_FIRST] = min(starts)


def position_of(tree: exp.Expr) -> int | None:
    """Where in the text a node starts: the first place that it or a part of it is known at."""
    first: int | None = None
    stack = [tree]
    while stack:
        node = stack.pop()
        start = node.meta.get(_FIRST)
        if start is None:
            start = node.meta.get("start")
            stack += node.iter_expressions()
        if start is not None and (first is None or start < first):
            first = start
    return None if first is None else first + 1
