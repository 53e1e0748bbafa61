"""A SQL/JSON path as a tree.

    path       [strict | lax] expression or predicate
    expression arithmetic over: a value ($, @, last, $variable, a literal) and accessors behind it
    predicate  == != < <= > >=, starts with, like_regex, exists (...), && || !, (...) is unknown

A predicate is a value too, where it stands in parentheses or is the whole path. Levels of binding,
loosest first: ``||``, ``&&``, comparisons, ``+ -``, ``* / %``, signs, accessors.

Law: `parse` takes the texts that PostgreSQL takes and refuses the rest with 42601, but for what
the tree has no node for: ``.datetime()`` and ``.keyvalue()`` are refused by name (0A000).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from noonmark.errors import EvaluationError, InvalidValue
from noonmark.rows.jsonb import canonical

DEPTH_MAX = 200
_CACHE_MAX = 256


class InvalidPath(EvaluationError, id="invalid_path", sqlstate="42601"):
    """A text that is no SQL/JSON path."""


class PathNotHeld(EvaluationError, id="path_not_held", sqlstate="0A000"):
    """A SQL/JSON path that PostgreSQL takes, and Noonmark does not."""


@dataclass(frozen=True)
class Node:
    """What an expression does, with its operands; accessors are in the order of the text."""

    kind: str
    value: Any = None
    operands: tuple[Node, ...] = ()
    accessors: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Path:
    """A whole path."""

    is_lax: bool
    root: Node


COMPARISONS = {"==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
PREDICATES = frozenset(
    (*COMPARISONS.values(), "&&", "||", "!", "exists", "is unknown", "starts with", "like_regex")
)
METHODS = frozenset(("type", "size", "double", "ceiling", "floor", "abs"))
_REFUSED = frozenset(("datetime", "keyvalue"))
#: Words with a meaning; these three only in small letters.
_EXACT = frozenset(("true", "false", "null"))
_WORDS = frozenset(
    ("is", "to", "exists", "strict", "lax", "last", "starts", "with", "like_regex", "flag")
) | {"unknown"}
_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/)
    |(?P<number>(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<variable>\$(?:"(?:[^"\\]|\\.)*"|[^\s?%$.\[\]{}()|&!=<>@\#,*:\-+/\\"]+))
    |(?P<sign>\*\*|&&|\|\||==|!=|<>|<=|>=|[$@.\[\]{}()?*+\-/%<>!,])
    |(?P<name>(?:[^\s?%$.\[\]{}()|&!=<>@\#,*:\-+/\\"])+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unexpected(text[at])
        kind, at = str(match.lastgroup), match.end()
        if kind == "number" and at < len(text) and (text[at].isalnum() or text[at] == "_"):
            raise InvalidPath(
                f'trailing junk after numeric literal at or near "{match.group()}{text[at]}" '
                "of jsonpath input"
            )
        if kind != "space":
            found.append(_Token(kind, match.group()))
    return found


def _unexpected(near: str) -> InvalidPath:
    if not near:
        return InvalidPath("syntax error at end of jsonpath input")
    return InvalidPath(f'syntax error at or near "{near}" of jsonpath input')


def _string(quoted: str) -> str:
    """What stands between double quotes, as in JavaScript."""
    text = re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", quoted)
    text = re.sub(r"\\u\{([0-9a-fA-F]{1,6})\}", lambda m: _escaped(int(m.group(1), 16)), text)
    text = re.sub(r"\\v", r"\\u000b", text)
    text = re.sub(r"\\([^bfnrtu\"\\/])", r"\1", text)
    try:
        canonical(f"[{text}]")
    except InvalidValue:
        raise _unexpected(quoted) from None
    return str(json.loads(text, strict=False))


def _escaped(point: int) -> str:
    if point > 0x10FFFF:
        raise InvalidPath("Unicode escape value cannot be greater than 10FFFF")
    return "".join(f"\\u{unit:04x}" for unit in _units(point))


def _units(point: int) -> Sequence[int]:
    if point < 0x10000:
        return (point,)
    return (0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF))


class _Parser:
    """One text; each method reads what its name says from where it stands."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        #: Whether @ and last mean something here.
        self._filters = self._subscripts = 0

    # -- looking ------------------------------------------------------------------------------

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("end", "")

    def _word(self, ahead: int = 0) -> str:
        """The word that stands there, as a word with a meaning; "" for anything else."""
        at = self._at + ahead
        if at >= len(self._tokens) or self._tokens[at].kind != "name":
            return ""
        text = self._tokens[at].text
        return text if text in _EXACT else text.lower() if text.lower() in _WORDS else ""

    def _sign(self, *signs: str) -> str | None:
        token = self._next
        if token.kind == "sign" and token.text in signs:
            self._at += 1
            return token.text
        return None

    def _need(self, sign: str) -> None:
        if self._sign(sign) is None:
            raise _unexpected(self._next.text)

    def _take_word(self, word: str) -> bool:
        if self._word() != word:
            return False
        self._at += 1
        return True

    # -- the grammar --------------------------------------------------------------------------

    def path(self) -> Path:
        is_lax = not self._take_word("strict")
        if is_lax:
            self._take_word("lax")
        root = self._any()
        if self._next.kind != "end":
            raise _unexpected(self._next.text)
        return Path(is_lax, root)

    def _any(self) -> Node:
        """An expression or a predicate."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PathNotHeld(f"a jsonpath is nested deeper than {DEPTH_MAX}")
        found = self._conjunctions()
        while self._sign("||"):
            found = _both("||", found, self._conjunctions())
        self._depth -= 1
        return found

    def _conjunctions(self) -> Node:
        found = self._comparison()
        while self._sign("&&"):
            found = _both("&&", found, self._comparison())
        return found

    def _comparison(self) -> Node:
        if self._sign("!"):
            return Node("!", operands=(self._delimited(),))
        left = self._sum()
        sign = self._sign(*COMPARISONS)
        if sign is not None:
            return Node(COMPARISONS[sign], operands=(_value(left), _value(self._sum())))
        if self._word() == "starts" and self._word(1) == "with":
            self._at += 2
            token = self._next
            if token.kind not in ("string", "variable"):
                raise _unexpected(token.text)
            return Node("starts with", operands=(_value(left), self._primary()))
        if self._take_word("like_regex"):
            return Node("like_regex", self._regex(), (_value(left),))
        return left

    def _delimited(self) -> Node:
        """What ! takes: a predicate in parentheses, or exists (...)."""
        if self._word() == "exists":
            return self._primary()
        self._need("(")
        found = _predicate(self._any())
        self._need(")")
        return found

    def _regex(self) -> tuple[str, str]:
        regex = self._text()
        flags = self._text() if self._take_word("flag") else ""
        for flag in flags:
            if flag not in "ismxq":
                raise InvalidPath(
                    "invalid input syntax for type jsonpath",
                    detail=f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.',
                )
        if "x" in flags and "q" not in flags:
            raise PathNotHeld('XQuery "x" flag (expanded regular expressions) is not implemented')
        return regex, flags

    def _text(self) -> str:
        token = self._next
        if token.kind != "string":
            raise _unexpected(token.text)
        self._at += 1
        return _string(token.text)

    def _sum(self) -> Node:
        found = self._product()
        while (sign := self._sign("+", "-")) is not None:
            found = Node(sign, operands=(_value(found), _value(self._product())))
        return found

    def _product(self) -> Node:
        found = self._signed()
        while (sign := self._sign("*", "/", "%")) is not None:
            found = Node(sign, operands=(_value(found), _value(self._signed())))
        return found

    def _signed(self) -> Node:
        sign = self._sign("+", "-")
        if sign is not None:
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise PathNotHeld(f"a jsonpath is nested deeper than {DEPTH_MAX}")
            operand = _value(self._signed())
            self._depth -= 1
            return _signed_number(sign, operand) or Node(f"unary {sign}", operands=(operand,))
        found = self._primary()
        if found.kind in PREDICATES:
            return found  # an accessor stands behind its parentheses alone
        accessors = []
        while (each := self._accessor()) is not None:
            accessors.append(each)
        if not accessors:
            return found
        # One chain, also through parentheses: what .** forgives, it forgives to the end of it.
        found = inner(found)
        return replace(found, accessors=(*found.accessors, *accessors))

    def _primary(self) -> Node:
        token = self._next
        self._at += 1
        match token.kind:
            case "number":
                return Node("literal", Decimal(token.text.rstrip(".")))
            case "string":
                return Node("literal", _string(token.text))
            case "variable":
                name = token.text[1:]
                return Node("variable", _string(name) if name.startswith('"') else name)
        if token.kind == "sign" and token.text == "$":
            return Node("$")
        if token.kind == "sign" and token.text == "@":
            if not self._filters:
                raise InvalidPath("@ is not allowed in root expressions")
            return Node("@")
        if token.kind == "sign" and token.text == "(":
            return self._parenthesised()
        self._at -= 1
        word = self._word()
        self._at += 1
        if word in _EXACT:
            return Node("literal", {"true": True, "false": False, "null": None}[word])
        if word == "last":
            if not self._subscripts:
                raise InvalidPath("LAST is allowed only in array subscripts")
            return Node("last")
        if word == "exists":
            self._need("(")
            made = Node("exists", operands=(_value(self._any()),))
            self._need(")")
            return made
        raise _unexpected(token.text)

    def _parenthesised(self) -> Node:
        found = self._any()
        self._need(")")
        if found.kind in PREDICATES and self._word() == "is" and self._word(1) == "unknown":
            self._at += 2
            return Node("is unknown", operands=(found,))
        return Node("group", operands=(found,))

    def _accessor(self) -> Node | None:
        if self._sign("["):
            return self._subscript()
        if self._sign("?"):
            self._need("(")
            self._filters += 1
            made = Node("filter", operands=(_predicate(self._any()),))
            self._filters -= 1
            self._need(")")
            return made
        return self._member() if self._sign(".") else None

    def _subscript(self) -> Node:
        if self._sign("*"):
            self._need("]")
            return Node("[*]")
        ranges = []
        self._subscripts += 1
        while True:
            first = _value(self._sum())
            last = _value(self._sum()) if self._take_word("to") else first
            ranges.append((first, last))
            if not self._sign(","):
                break
        self._subscripts -= 1
        self._need("]")
        return Node("[]", tuple(ranges))

    def _member(self) -> Node:
        if self._sign("*"):
            return Node(".*")
        if self._sign("**"):
            return Node(".**", self._levels())
        token = self._next
        self._at += 1
        if token.kind == "string":
            return Node("key", _string(token.text))
        if token.kind != "name":
            raise _unexpected(token.text)
        name = token.text.lower()
        if name in METHODS | _REFUSED and self._next == _Token("sign", "("):
            if name in _REFUSED:
                raise PathNotHeld(f"the jsonpath method .{name}() is not supported")
            self._at += 1
            self._need(")")
            return Node("method", name)
        return Node("key", token.text)

    def _levels(self) -> tuple[int | None, int | None]:
        """(first, last) of .**{first to last}; None for the deepest."""
        if not self._sign("{"):
            return 0, None
        first = self._level()
        last = self._level() if self._take_word("to") else first
        self._need("}")
        return first, last

    def _level(self) -> int | None:
        if self._take_word("last"):
            return None
        token = self._next
        if token.kind != "number" or not token.text.isdigit():
            raise _unexpected(token.text)
        self._at += 1
        return int(token.text)


def _signed_number(sign: str, node: Node) -> Node | None:
    """A number with its sign, which is one literal."""
    found = inner(node)
    if not isinstance(found.value, Decimal) or found.accessors:
        return None
    if sign == "+" or not found.value:
        return found
    return replace(found, value=found.value.copy_negate())


def _both(sign: str, left: Node, right: Node) -> Node:
    return Node(sign, operands=(_predicate(left), _predicate(right)))


def inner(node: Node) -> Node:
    """What parentheses stand around."""
    while node.kind == "group" and not node.accessors:
        node = node.operands[0]
    return node


def _predicate(node: Node) -> Node:
    found = inner(node)
    if found.kind not in PREDICATES or found.accessors:
        raise _unexpected("")
    return found


def _value(node: Node) -> Node:
    """An operand; a predicate is one only with an accessor behind it."""
    found = inner(node)
    if found.kind in PREDICATES and not found.accessors:
        raise _unexpected("")
    return found


@lru_cache(maxsize=_CACHE_MAX)
def parse(text: str) -> Path:
    """The path that a text says.

    Raises:
        InvalidPath: it says none.

    >>> parse("$.a[0 to last] ? (@ > 1)").root.kind
    '$'
    """
    if not text:
        raise InvalidValue('invalid input syntax for type jsonpath: ""')
    return _Parser(text).path()
