"""Queries with a word too many, too few or another one: what is no SQL, PostgreSQL refuses.

A parser that forgives answers another question than the one that was asked. So a whole query is cut
into tokens, some of these are left out, doubled, exchanged or joined by a word of SQL or of another
dialect, and the text goes to both: what PostgreSQL refuses must not be answered, and what both
answer must be one answer.
"""

from __future__ import annotations

import re
from collections import Counter

from support.sql.any.choices import Choices

#: A string, a name in quotes, a number, a word, an operator, a sign: with what stands before it.
_TOKEN = re.compile(
    r"""\s*(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|\d+(?:\.\d+)?|\w+|::|[<>=!|&@#~?^*/%+-]+|.)""", re.S
)
#: Words of PostgreSQL's grammar, and of other dialects that parsers know.
_TEXT = """
    all and any as asc between by case cast collate cross cube current desc distinct else end escape
    except exclude exists false fetch filter first following for from full group grouping groups
    having ilike in inner intersect into is isnull join last lateral left like limit materialized
    natural not notnull null nulls offset on only or order ordinality outer over overlaps partition
    preceding range recursive respect right rollup row rows select set sets similar some symmetric
    then ties to true unbounded union unique unknown update using values when where window with
    within without array row search cycle depth breadth tablesample returning default
    qualify pivot unpivot sample apply outer semi anti asof positional top ignore replace rename
    sort distribute cluster prewhere final settings totals percent unnest explode view glob rlike
    regexp div mod xor match if interval date timestamp format safe try_cast struct map list lambda
"""
_WORDS = tuple(_TEXT.split())
_MARKS = "( ) , [ ] . * = :: - < == <=> @ : + { } ! != || && -> => ? 'x' 1 null $$a$$ /**/"
_SIGNS = (*_MARKS.split(), "--\n")


def mutated(choices: Choices, sql: str, met: Counter[str]) -> str:
    """The query with one to three of its tokens changed."""
    tokens = _TOKEN.findall(sql)
    for _ in range(1 + choices.below(3)):
        form = choices.below(6)
        at = choices.below(len(tokens))
        met[f"mutation {form}"] += 1
        if form == 0:
            del tokens[at : at + 1 + choices.below(2)]
        elif form == 1:
            tokens.insert(at, f" {choices.pick(_WORDS)}")
        elif form == 2:
            tokens[at] = f" {choices.pick(_WORDS)}"
        elif form == 3:
            other = choices.below(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif form == 4:
            tokens.insert(at, f" {choices.pick(_SIGNS)}")
        else:
            span = tokens[at : at + 1 + choices.below(4)]
            tokens[at:at] = span
        if not tokens:
            return "("
    return "".join(tokens)
