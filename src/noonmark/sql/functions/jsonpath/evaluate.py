"""The meaning of a SQL/JSON path over one document.

A path gives items, in order. In *lax* mode (the default) an accessor of members looks into the
items of an array, an accessor of arrays takes anything else for an array of one, and what is not
there gives nothing; in *strict* mode each of these is an error.

A predicate is true, false or unknown (None). An error inside of a predicate makes it unknown, and
never fails the path. Law: items come one by one, so an error behind the first item is not met by
whoever wants one item only.

Names, order and errors are those of PostgreSQL 15.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from typing import Any

from noonmark.errors import DivisionByZero, EvaluationError, UndefinedObject
from noonmark.rows.coded.path_syntax import COMPARISONS, PREDICATES, Node, Path
from noonmark.rows.pg.floats import parse_double
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.number.numeric import divide, modulo
from noonmark.sql.functions.text import pattern
from noonmark.sql.pattern.matcher import Matcher

_INT_MAX = 2**31


class NoMember(EvaluationError, id="json_no_member", sqlstate="2203A"):
    """A member that an object has not."""


class BadSubscript(EvaluationError, id="json_bad_subscript", sqlstate="22033"):
    """A subscript that an array has not."""


class NoArray(EvaluationError, id="json_no_array", sqlstate="22039"):
    """Something else, where an array must be."""


class NoObject(EvaluationError, id="json_no_object", sqlstate="2203C"):
    """Something else, where an object must be."""


class NoNumber(EvaluationError, id="json_no_number", sqlstate="2203B"):
    """Something else, where a number must be."""


class NoNumericItem(EvaluationError, id="json_non_numeric", sqlstate="22036"):
    """Something else, where a method needs a number."""


class NotOne(EvaluationError, id="json_not_one", sqlstate="22038"):
    """None or several, where one item must be."""


_ERRORS = (
    NoMember, BadSubscript, NoArray, NoObject, NoNumber, NoNumericItem, NotOne, DivisionByZero,
)  # fmt: skip
Items = Iterator[Any]
_SIGNS = ("unary +", "unary -")


@dataclass(frozen=True)
class _Context:
    """Where an expression stands."""

    is_lax: bool
    #: Whether what is not there gives nothing.
    forgives: bool
    root: Any
    variables: dict[str, Any]
    current: Any
    #: The size of the innermost array whose subscript is asked for.
    size: int = 0


def evaluate(path: Path, document: Any, variables: dict[str, Any]) -> Items:
    """The items that a path gives, one by one.

    Raises:
        EvaluationError: from where on there are no more of them.
    """
    return _items(_root(path, document, variables), path.root)


def exists(path: Path, document: Any, variables: dict[str, Any]) -> bool:
    """Whether a path gives an item; in strict mode, and no error either."""
    return _is_there(_root(path, document, variables), path.root)


def suppressed(error: Exception) -> bool:
    """Whether an error is one of the path's, which `silent` takes for nothing."""
    return isinstance(error, _ERRORS)


def _root(path: Path, document: Any, variables: dict[str, Any]) -> _Context:
    return _Context(path.is_lax, path.is_lax, document, variables, document)


def _is_there(context: _Context, node: Node) -> bool:
    """Whether an expression gives an item: the first one in lax mode, all of them in strict."""
    if not context.is_lax:
        return bool(list(_items(context, node)))
    while node.kind == "group" and not node.accessors:
        node = node.operands[0]
    items = _items(context, node)
    if node.kind in _SIGNS and not node.accessors:
        # Who only asks whether there is one passes over what has no sign.
        operand = list(_unwrapped(context, node.operands[0]))
        items = (each for each in operand if _is_number(each))
    return next((True for _ in items), False)


# -- expressions -----------------------------------------------------------------------------------


def _items(context: _Context, node: Node) -> Items:
    """The items of an expression, with its accessors."""
    for item in _own(context, node):
        yield from _access(context, node.accessors, item, unwrap=context.is_lax)


def _own(context: _Context, node: Node) -> Items:
    """The items of an expression, without what its accessors make of them."""
    match node.kind:
        case "$":
            yield context.root
        case "@":
            yield context.current
        case "literal":
            yield node.value
        case "last":
            yield Decimal(context.size - 1)
        case "variable":
            if node.value not in context.variables:
                raise UndefinedObject(f'could not find jsonpath variable "{node.value}"')
            yield context.variables[node.value]
        case "group":
            yield from _items(context, node.operands[0])
        case kind if kind in _SIGNS:
            yield from _signed(context, node)
        case kind if kind in PREDICATES:
            yield _truth(context, node)
        case _:
            yield _arithmetic(context, node)


def _unwrapped(context: _Context, node: Node, *, unwrap: bool = True) -> Items:
    """The items of an operand; in lax mode, those of arrays."""
    for item in _items(context, node):
        if unwrap and context.is_lax and isinstance(item, list):
            yield from item
        else:
            yield item


def _is_number(item: Any) -> bool:
    return isinstance(item, Decimal)


def _signed(context: _Context, node: Node) -> Items:
    sign = node.kind[-1]
    for item in list(_unwrapped(context, node.operands[0])):
        if not _is_number(item):
            raise NoNumber(f"operand of unary jsonpath operator {sign} is not a numeric value")
        yield item if sign == "+" else WIDE.minus(item) if item else item


_ARITHMETIC: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": WIDE.add,
    "-": WIDE.subtract,
    "*": WIDE.multiply,
    "/": divide,
    "%": modulo,
}


def _arithmetic(context: _Context, node: Node) -> Decimal:
    operands = [list(_unwrapped(context, each)) for each in node.operands]
    for side, found in zip(("left", "right"), operands, strict=True):
        if len(found) != 1 or not _is_number(found[0]):
            raise NotOne(
                f"{side} operand of jsonpath operator {node.kind} is not a single numeric value"
            )
    made = _ARITHMETIC[node.kind](operands[0][0], operands[1][0])
    return made if made else made.copy_abs()


# -- accessors -------------------------------------------------------------------------------------


def _access(context: _Context, steps: tuple[Node, ...], item: Any, *, unwrap: bool) -> Items:
    """What accessors make of an item; `unwrap` says whether an array stands for its items."""
    if not steps:
        yield item
        return
    step, rest = steps[0], steps[1:]
    looks_into = step.kind in (".*", "key", "filter") or (
        step.kind == "method" and step.value not in ("type", "size")
    )
    if unwrap and looks_into and isinstance(item, list):
        for each in item:
            yield from _access(context, steps, each, unwrap=False)
        return
    if step.kind == ".**":
        yield from _descendants(context, step.value, rest, item)
        return
    for each in _STEPS[step.kind](context, step, item):
        yield from _access(context, rest, each, unwrap=context.is_lax)


def _descendants(
    context: _Context, levels: tuple[int | None, int | None], rest: tuple[Node, ...], item: Any
) -> Items:
    """An item and all below it, of some levels; nothing that is missing there is an error."""
    first, last = levels
    forgiving = replace(context, forgives=True)
    if first == 0:
        yield from _access(forgiving, rest, item, unwrap=context.is_lax)

    def below(container: Any, level: int) -> Items:
        for each in _children(container):
            is_leaf = not isinstance(each, list | dict)
            wanted = is_leaf if first is None else level >= first
            if wanted:
                yield from _access(forgiving, rest, each, unwrap=context.is_lax)
            if not is_leaf and (last is None or level < last):
                yield from below(each, level + 1)

    yield from below(item, 1)


def _children(item: Any) -> list[Any]:
    return list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []


def _key(context: _Context, step: Node, item: Any) -> Items:
    if isinstance(item, dict):
        if step.value in item:
            yield item[step.value]
        elif not context.forgives:
            raise NoMember(f'JSON object does not contain key "{step.value}"')
    elif not context.forgives:
        raise NoMember("jsonpath member accessor can only be applied to an object")


def _members(context: _Context, _: Node, item: Any) -> Items:
    if isinstance(item, dict):
        yield from item.values()
    elif not context.forgives:
        raise NoObject("jsonpath wildcard member accessor can only be applied to an object")


def _elements(context: _Context, _: Node, item: Any) -> Items:
    if isinstance(item, list):
        yield from item
    elif context.is_lax:
        yield item
    elif not context.forgives:
        raise NoArray("jsonpath wildcard array accessor can only be applied to an array")


def _subscripts(context: _Context, step: Node, item: Any) -> Items:
    if not isinstance(item, list) and not context.is_lax:
        if not context.forgives:
            raise NoArray("jsonpath array accessor can only be applied to an array")
        return
    array = item if isinstance(item, list) else [item]
    inside = replace(context, size=len(array))
    for first, last in step.value:
        low = _index(inside, first)
        high = low if last is first else _index(inside, last)
        if not context.forgives and (low < 0 or low > high or high >= len(array)):
            raise BadSubscript("jsonpath array subscript is out of bounds")
        yield from array[max(low, 0) : max(high + 1, 0)]


def _index(context: _Context, node: Node) -> int:
    found = list(_items(context, node))
    if len(found) != 1 or not _is_number(found[0]):
        raise BadSubscript("jsonpath array subscript is not a single numeric value")
    whole = found[0].to_integral_value(ROUND_DOWN)
    if not -_INT_MAX <= whole < _INT_MAX:
        raise BadSubscript("jsonpath array subscript is out of integer range")
    return int(whole)


def _filter(context: _Context, step: Node, item: Any) -> Items:
    if _truth(replace(context, current=item), step.operands[0]):
        yield item


def _method(context: _Context, step: Node, item: Any) -> Items:
    name = step.value
    if name == "type":
        yield _type_of(item)
    elif name == "size":
        if not isinstance(item, list) and not context.is_lax:
            if not context.forgives:
                raise NoArray("jsonpath item method .size() can only be applied to an array")
            return
        yield Decimal(len(item) if isinstance(item, list) else 1)
    elif name == "double":
        yield _double(item)
    elif not _is_number(item):
        raise NoNumericItem(
            f"jsonpath item method .{name}() can only be applied to a numeric value"
        )
    else:
        made = _NUMBERS[name](item)
        yield made if made else made.copy_abs()


_NUMBERS: dict[str, Callable[[Decimal], Decimal]] = {
    "abs": Decimal.copy_abs,
    "floor": lambda number: number.quantize(Decimal(1), ROUND_FLOOR, WIDE),
    "ceiling": lambda number: number.quantize(Decimal(1), ROUND_CEILING, WIDE),
}


def _double(item: Any) -> Decimal:
    if not isinstance(item, str | Decimal):
        raise NoNumericItem(
            "jsonpath item method .double() can only be applied to a string or numeric value"
        )
    try:
        found = parse_double(str(item))
    except EvaluationError:
        if isinstance(item, str):
            raise NoNumericItem(
                "string argument of jsonpath item method .double() is not a valid representation "
                "of a double precision number"
            ) from None
        raise NoNumericItem(
            "numeric argument of jsonpath item method .double() is out of range for type double "
            "precision"
        ) from None
    if not math.isfinite(found):
        raise NoNumericItem("NaN or Infinity is not allowed for jsonpath item method .double()")
    if not isinstance(item, str):
        return item
    made = Decimal(f"{found:.15g}")
    return made.quantize(Decimal(1), context=WIDE) if made == made.to_integral_value() else made


def _type_of(item: Any) -> str:
    kinds = ((bool, "boolean"), (Decimal, "number"), (str, "string"), (list, "array"))
    known = next((name for kind, name in kinds if isinstance(item, kind)), None)
    return known or ("null" if item is None else "object")


_STEPS: dict[str, Callable[[_Context, Node, Any], Items]] = {
    "key": _key,
    ".*": _members,
    "[*]": _elements,
    "[]": _subscripts,
    "filter": _filter,
    "method": _method,
}


# -- predicates ------------------------------------------------------------------------------------


def _truth(context: _Context, node: Node) -> bool | None:
    match node.kind:
        case "&&":
            left = _truth(context, node.operands[0])
            if left is False:
                return False
            right = _truth(context, node.operands[1])
            return left if right is True else right
        case "||":
            left = _truth(context, node.operands[0])
            if left is True:
                return True
            right = _truth(context, node.operands[1])
            return left if right is False else right
        case "!":
            found = _truth(context, node.operands[0])
            return None if found is None else not found
        case "is unknown":
            return _truth(context, node.operands[0]) is None
        case "exists":
            return _exists(context, node.operands[0])
        case "like_regex":
            return _compared(context, node, lambda item, _: _matches(item, *node.value))
        case "starts with":
            return _compared(context, node, _starts, unwrap_right=False)
    return _compared(context, node, lambda left, right: _compare(node.kind, left, right))


def _exists(context: _Context, node: Node) -> bool | None:
    try:
        return _is_there(context, node)
    except _ERRORS:
        return None


def _compared(
    context: _Context,
    node: Node,
    test: Callable[[Any, Any], bool | None],
    *,
    unwrap_right: bool = True,
) -> bool | None:
    """Whether one pair of items passes; in strict mode, and none is unknown."""
    try:
        left = list(_unwrapped(context, node.operands[0]))
        right = [None]
        if len(node.operands) > 1:
            right = list(_unwrapped(context, node.operands[1], unwrap=unwrap_right))
    except _ERRORS:
        return None
    found = unknown = False
    for one in left:
        for other in right:
            passes = test(one, other)
            if passes is None:
                if not context.is_lax:
                    return None
                unknown = True
            elif passes:
                if context.is_lax:
                    return True
                found = True
    return True if found else None if unknown else False


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
assert set(_ORDER) == set(COMPARISONS.values())


def _compare(sign: str, left: Any, right: Any) -> bool | None:
    """Scalars of one type by their order; null is nothing else; the rest is unknown."""
    if _type_of(left) != _type_of(right):
        return sign == "!=" if left is None or right is None else None
    if isinstance(left, list | dict):
        return None
    if left is None:
        return sign in ("==", "<=", ">=")
    return _ORDER[sign](left, right)


def _starts(whole: Any, start: Any) -> bool | None:
    both = isinstance(whole, str) and isinstance(start, str)
    return whole.startswith(start) if both else None


#: XQuery's options "s" (. matches ends of lines) and "m" (^ and $ do) in PostgreSQL's letters.
_LINES = {(False, False): "p", (True, False): "s", (False, True): "n", (True, True): "w"}


def _matches(item: Any, regex: str, flags: str) -> bool | None:
    if not isinstance(item, str):
        return None
    return regex_of(regex, flags).test(item)


def regex_of(regex: str, flags: str) -> Matcher:
    """The regular expression of a like_regex."""
    lines = "q" if "q" in flags else _LINES["s" in flags, "m" in flags]
    return pattern.regex(regex, lines + ("i" if "i" in flags else ""))
