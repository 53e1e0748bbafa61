"""``jsonpath``: a path into JSON documents, read once.

A value is its text, written anew from the tree (`path_syntax`): strings as JSON writes them,
brackets only where they decide something. Paths have no equality and no order, as in PostgreSQL.

Law (text): ``parse(show(p))`` is the same tree. PostgreSQL's text is the same, except for
parentheses before an accessor inside of an expression: it leaves them out (``1 + 2.abs()`` of
``1 + (2 * $).abs()``), and cannot read that again.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from noonmark.rows.coded.path_syntax import COMPARISONS, Node, Path, inner, parse
from noonmark.rows.types import Coded

_BINARY_VERSION = b"\1"
#: How tightly operators bind; what is not named, most.
_BINDING = {
    "||": 0, "&&": 1, **dict.fromkeys((*COMPARISONS.values(), "starts with"), 2),
    "+": 3, "-": 3, "*": 4, "/": 4, "%": 4, "unary +": 5, "unary -": 5,
}  # fmt: skip
_TIGHTEST = 6
#: Flags of like_regex in the order in which they are written.
_FLAGS = "ismxq"


@dataclass(frozen=True, slots=True)
class Jsonpath(Coded):
    """A SQL/JSON path."""

    spelling: ClassVar[str] = "jsonpath"
    oid: ClassVar[int] = 4072
    array_oid: ClassVar[int] = 4073
    tag: ClassVar[int] = 173
    stem: ClassVar[str] = "jsonpath_"
    equality: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    #: What looks at the regular expressions of a path, whose grammar stands above this layer.
    check: ClassVar[Callable[[Path], None]] = staticmethod(lambda _: None)

    def parse(self, text: str, _: dt.tzinfo = dt.UTC) -> bytes:
        path = parse(text)
        Jsonpath.check(path)
        return shown(path).encode()

    def show(self, value: bytes, _: dt.tzinfo = dt.UTC) -> str:
        return value.decode()

    def send(self, value: bytes) -> bytes:
        return _BINARY_VERSION + value

    def receive(self, raw: bytes) -> bytes:
        if raw[:1] != _BINARY_VERSION:
            raise ValueError(f"unsupported jsonpath version number: {raw[0] if raw else 0}")
        return self.parse(raw[1:].decode())


def shown(path: Path) -> str:
    """The text of a path."""
    return ("" if path.is_lax else "strict ") + _written(path.root, bracketed=True)


def _written(node: Node, *, bracketed: bool = False) -> str:
    """The text of an expression; `bracketed` says whether an operator needs parentheses."""
    node = inner(node)
    own = _own(node, bracketed or bool(node.accessors))
    if node.accessors and node.kind in ("literal", "exists", "!", "is unknown"):
        is_number = isinstance(node.value, Decimal)
        own = f"({own})" if is_number or node.kind != "literal" else own
    return own + "".join(map(_accessor, node.accessors))


def _own(node: Node, bracketed: bool) -> str:
    match node.kind:
        case "$" | "@" | "last":
            return node.kind
        case "literal":
            return _literal(node.value)
        case "variable":
            return f"${_quoted(node.value)}"
        case "!":
            return f"!({_written(node.operands[0])})"
        case "is unknown":
            return f"({_written(node.operands[0])}) is unknown"
        case "exists":
            return f"exists ({_written(node.operands[0])})"
    binding = _BINDING.get(node.kind, _TIGHTEST)
    operands = [_operand(each, binding) for each in node.operands]
    if node.kind == "like_regex":
        pattern, flags = node.value
        told = "".join(flag for flag in _FLAGS if flag in flags)
        text = f"{operands[0]} like_regex {_quoted(pattern)}" + (told and f' flag "{told}"')
    elif len(operands) == 1:
        text = f"{node.kind[-1]}{operands[0]}"
    else:
        text = f" {node.kind} ".join(operands)
    return f"({text})" if bracketed else text


def _operand(node: Node, outside: int) -> str:
    return _written(node, bracketed=_BINDING.get(inner(node).kind, _TIGHTEST) <= outside)


def _literal(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def _accessor(step: Node) -> str:
    match step.kind:
        case "key":
            return f".{_quoted(step.value)}"
        case "filter":
            return f"?({_written(step.operands[0])})"
        case "method":
            return f".{step.value}()"
        case "[]":
            return f"[{','.join(_subscript(*each) for each in step.value)}]"
        case ".**":
            return f".**{_levels(*step.value)}"
    return step.kind


def _subscript(first: Node, last: Node) -> str:
    return _written(first) + ("" if last is first else f" to {_written(last)}")


def _levels(first: int | None, last: int | None) -> str:
    if (first, last) == (0, None):
        return ""
    low, high = ("last" if each is None else str(each) for each in (first, last))
    return f"{{{low}}}" if low == high else f"{{{low} to {high}}}"


TYPES = (Jsonpath,)
