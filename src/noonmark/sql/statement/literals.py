"""INSERT INTO ... VALUES with many rows of literals: read by rows, without a tree of each cell.

Law (same): where `literal_insert` finds a statement, its text is that one statement, the head of it
with its first row means what the parser says, and `cells` are the literals of all rows as they are
written: numbers without an exponent, strings in plain quotes, NULL, TRUE and FALSE. Anything else
anywhere, a comment, another clause, rows of different lengths, and there is none: the parser reads
it. The tree of all rows is there for who asks, made when it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp

from noonmark.sql import dialect
from noonmark.sql.turns import WAITING, pass_on

#: Fewer rows are as quick with the parser.
ROWS_MIN = 4
_CELL = r"-?[0-9]+(?:\.[0-9]+)?|'(?:[^']++|'')*+'|(?i:null|true|false)"
_SPACE = r"[ \t\n\r]*+"
_HEAD = re.compile(
    rf"{_SPACE}insert[ \t\n\r]+into[ \t\n\r]+[\w$.\"]+{_SPACE}(?:\([\w$\", \t\n\r]*\))?{_SPACE}"
    rf"\bvalues{_SPACE}(?=\()",
    re.IGNORECASE | re.ASCII,
)
_FIRST = re.compile(rf"\({_SPACE}(?:{_CELL}){_SPACE}(?:,{_SPACE}(?:{_CELL}){_SPACE})*+\)")
_CELLS = re.compile(_CELL)
_END = re.compile(rf"{_SPACE};?{_SPACE}\Z")


@dataclass(frozen=True)
class LiteralRows:
    """The rows of an INSERT as literals; to others a `QueryText`.

    Attributes:
        text: the whole statement.
        position: where VALUES starts, from 1.
        offset: where the statement starts, from 0.
        cells: of each row, its literals as they are written.
    """

    text: str
    position: int = field(compare=False)
    offset: int = field(compare=False)
    cells: Sequence[tuple[str, ...]] = field(compare=False, repr=False)

    @cached_property
    def tree(self) -> exp.Expr:
        """The syntax tree of the rows."""
        tree = dialect.parse(self.text, self.offset)
        assert isinstance(tree, exp.Insert), "its first row was read as one"
        found: exp.Expr = tree.expression
        return found


@dataclass(frozen=True)
class LiteralInsert:
    """Where the parts of such a statement are in its text, and its cells.

    Attributes:
        start: where it starts.
        first_end: where its first row ends.
        end: where its last row ends.
        cells: see `LiteralRows`.
    """

    start: int
    first_end: int
    end: int
    cells: Sequence[tuple[str, ...]]


def literal_insert(text: str) -> LiteralInsert | None:
    """The parts of a text that is one such statement; None where it is not, or not certainly."""
    head = _HEAD.match(text)
    first = None if head is None else _FIRST.match(text, head.end())
    if first is None or "\0" in text:
        return None
    row = _row(len(_CELLS.findall(first[0])))
    cells: list[tuple[str, ...]] = []
    at, more = first.start(), True
    while more and (match := row.match(text, at)) is not None:
        if WAITING:
            pass_on()
        *found, follows = match.groups()
        cells.append(tuple(found))
        at, more = match.end(), follows is not None
    end = at
    if more:
        return None
    if len(cells) < ROWS_MIN or _END.match(text, end) is None:
        return None
    start = len(text) - len(text.lstrip(" \t\n\r"))
    return LiteralInsert(start, first.end(), end, cells)


@lru_cache(maxsize=256)
def _row(width: int) -> re.Pattern[str]:
    """A row of so many cells, and whether another one follows."""
    cells = rf"{_SPACE},{_SPACE}".join([f"({_CELL})"] * width)
    return re.compile(rf"{_SPACE}\({_SPACE}{cells}{_SPACE}\)(?:{_SPACE}(,))?")
