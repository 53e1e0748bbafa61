"""What statements have in common that differ in their literals alone.

Clients that put values into the text send the same statement again and again, each time another
text. Its *shape* is the text with parameters where literals stand that mean the same as a parameter
of their type does:

    select * from t where id = 7 and name = 'x'    select * from t where id = $1 and name = $2

Law (operand): a literal becomes a parameter only where it is a whole operand of a comparison or an
assignment (behind ``=``, ``<`` and the like, before ``and``, ``,``, ``)`` or a clause), or a whole
value of a row of INSERT ... VALUES. All others stay: behind LIMIT, in ORDER BY 1, beside an
operator, in a cast, in a list of IN. So what a literal may mean by its place, no parameter hides.
Law (text): a text that this cannot cut surely (comments, prefixed and dollar-quoted strings,
backslashes, several statements, parameters) has no shape.

An integer has the type that PostgreSQL gives it, by its size; a quoted literal has none until its
place gives it one, as a parameter has.

Where it runs: the adapter's loop; pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from noonmark.rows import types as t
from noonmark.rows.types import SqlType

#: Texts up to this length are looked at.
LENGTH_MAX = 4_096

_FIRST = re.compile(r"\s*(select|insert|update|delete)\b", re.I)
#: The condition of an index is told by its literals, too.
_NEVER = re.compile(r"--|/\*|[\\$\0]|\bconflict\b(?:(?!\bdo\b).)*\bwhere\b", re.I | re.S)
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d]\w*)|(?P<string>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)(?![\w.])"
    r'|(?P<name>"[^"]+")|(?P<operator>[-+*/<>=~!@#%^&|`?]+?(?=-?\d|[^-+*/<>=~!@#%^&|`?]|$))'
    r"|(?P<sign>[(),.;:\[\]]))"
)
_COMPARES = frozenset(("=", "<", ">", "<=", ">=", "<>", "!="))
_ENDS = frozenset((")", ",", "", "and", "or", "where", "from", "order", "group", "having", "limit",
                   "offset", "returning", "as", "then"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """The text with parameters, their types where they are known, and the values that stood there.

    The value of a parameter without a type is what is between the quotes.
    """

    text: str
    types: tuple[SqlType | None, ...]
    values: tuple[int | Decimal | str, ...]


def shape_of(text: str) -> Shape | None:
    """The shape of a statement; None where it has none, or no literal is taken out.

    >>> shape_of("update t set a = 'it''s' where id = 5 limit 1").text
    'update t set a = $1 where id = $2 limit 1'
    >>> shape_of("select * from t order by 1") is None
    True
    """
    if len(text) > LENGTH_MAX or _NEVER.search(text) is not None:
        return None
    first = _FIRST.match(text)
    tokens = None if first is None else _tokens(text)
    if first is None or tokens is None:
        return None
    pieces: list[str] = []
    types: list[SqlType | None] = []
    values: list[int | Decimal | str] = []
    at = 0
    for start, end, in_row in _places(tokens, inserts=first[1].lower() == "insert"):
        kind, value = _literal(text[start:end])
        if not in_row and isinstance(value, Decimal):
            continue
        types.append(kind)
        values.append(value)
        pieces += (text[at:start], f"${len(values)}")
        at = end
    if not values:
        return None
    return Shape("".join((*pieces, text[at:])), tuple(types), tuple(values))


#: What a token is (the name of its group), how it is compared, and where it is.
_Token = tuple[str, str, int, int]


def _tokens(text: str) -> list[_Token] | None:
    found: list[_Token] = []
    at, end = 0, len(text.rstrip().rstrip(";").rstrip())
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None:
            return None
        kind = match.lastgroup or ""
        value = match[kind].lower() if kind in ("word", "operator", "sign") else ""
        prefixed = kind == "string" and found and found[-1][3] == match.start(kind)
        if value == ";" or (prefixed and found[-1][0] == "word"):
            return None
        found.append((kind, value, match.start(kind), match.end()))
        at = match.end()
    return found


def _places(tokens: list[_Token], *, inserts: bool) -> list[tuple[int, int, bool]]:
    """Where literals are that become parameters, and whether in a row of VALUES."""
    found: list[tuple[int, int, bool]] = []
    depth = 0
    rows = False
    before = ""
    for number, (kind, value, start, end) in enumerate(tokens):
        if kind in ("string", "number"):
            after = tokens[number + 1][1] if number + 1 < len(tokens) else ""
            ends = after in _ENDS and (number + 1 == len(tokens) or bool(after))
            if ends and before in _COMPARES:
                found.append((start, end, False))
            elif rows and depth == 1 and before in ("(", ",") and after in (",", ")"):
                found.append((start, end, True))
        elif kind == "sign":
            depth += (value == "(") - (value == ")")
        elif kind == "word" and depth == 0:
            rows = inserts and value == "values"
        before = value
    return found


def _literal(text: str) -> tuple[SqlType | None, int | Decimal | str]:
    if text.startswith("'"):
        return None, text[1:-1].replace("''", "'")
    if "." in text:
        number = Decimal(text)
        return t.Numeric(), number or abs(number)  # a numeric has no zero below zero
    value = int(text)
    if abs(value) < 1 << 31:
        return t.Integer(), value
    return (t.BigInt(), value) if abs(value) < 1 << 63 else (t.Numeric(), Decimal(text))
