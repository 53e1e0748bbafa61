"""What sqlglot forgives and PostgreSQL does not: items, words and conditions that are missing.

``SELECT a,, b``, ``FROM t AS``, ``CASE WHEN a b END``, ``t JOIN u``: each is read as if nothing
were missing, and answers a question that nobody asked.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from noonmark.sql.precedence import Precedence

_WORDS = """
    array as char character create day except fetch filter for from grant group having hour
    intersect into isnull limit minute month notnull offset on order over overlaps precision
    returning second to union varying where window with within without year
"""
#: Words that are no name of a column without AS.
_WITH_AS = frozenset(_WORDS.split())


class Whole(Precedence):
    """PostgreSQL's grammar, where every part that must be there is there."""

    OPTIONAL_ALIAS_TOKEN_CTE = False

    def _parse_window(self, *args: Any, **kwargs: Any) -> Any:
        """OVER, and over what."""
        window = super()._parse_window(*args, **kwargs)
        if isinstance(window, exp.Window) and self._prev.token_type == TokenType.OVER:
            self.raise_error("Expected a window")
        return window

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        """Items between commas; none of several is missing."""
        first = parse_method()
        items = [] if first is None else [first]
        while self._match(sep):
            comma = self._prev
            item = parse_method()
            if item is None or first is None:
                self.raise_error("Expected an item", comma)
            items.append(item)
        return items

    def _parse_case(self) -> Any:
        """Each WHEN with its THEN, at least one of them."""
        operand, ifs, default = self._parse_disjunction(), [], None
        while self._match(TokenType.WHEN):
            test = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.raise_error("Expected THEN")
            ifs.append(self.expression(exp.If(this=test, true=self._parse_disjunction())))
        if not ifs:
            self.raise_error("Expected WHEN")
        if self._match(TokenType.ELSE):
            default = self._parse_disjunction()
            if default is None:
                self.raise_error("Expected an expression")
        if not self._match(TokenType.END):
            self.raise_error("Expected END")
        return self.expression(exp.Case(this=operand, ifs=ifs, default=default))

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        """A name without AS, unless it is a word that wants one."""
        first = self._curr
        found = super()._parse_alias(this, explicit)
        bare = isinstance(found, exp.Alias) and found is not this and first.text.upper() != "AS"
        if bare and first.text.lower() in _WITH_AS and first.token_type != TokenType.IDENTIFIER:
            self.raise_error("Expected AS", first)
        return found

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> Any:
        """A name behind AS, or columns with their types."""
        named = self._curr is not None and self._curr.token_type == TokenType.ALIAS
        alias = super()._parse_table_alias(*args, **kwargs)
        columns = () if alias is None else alias.args.get("columns") or ()
        typed = bool(columns) and all(isinstance(each, exp.ColumnDef) for each in columns)
        if (named and alias is None) or (alias is not None and alias.this is None and not typed):
            self.raise_error("Expected a name")
        return alias

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        """A JOIN that is neither CROSS nor NATURAL says what it joins on."""
        listed = self._curr is not None and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **kwargs)
        if not isinstance(join, exp.Join):
            if listed and self._prev.token_type == TokenType.COMMA:
                self.raise_error("Expected an item", self._prev)
            return join
        free = listed or "CROSS" in (join.kind or "").upper() or join.args.get("method")
        if not free and not join.args.get("on") and not join.args.get("using"):
            self.raise_error("Expected ON or USING")
        return join

    def _parse_limit(self, *args: Any, **kwargs: Any) -> Any:
        """``LIMIT n``; where the rows begin is told by OFFSET."""
        limit = super()._parse_limit(*args, **kwargs)
        if isinstance(limit, exp.Limit) and limit.args.get("offset"):
            self.raise_error("LIMIT #,# syntax is not supported", self._prev)
        return limit
