"""The meaning of scalars: the value of an expression for one row, in plain Python.

This is the definition that every other way to compute a scalar is tested against, and what the
rule `fold` uses. NULL is None; an error of the expression is an `EvaluationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from noonmark.errors import TooComplex, UsageError
from noonmark.rows.order import sort_key
from noonmark.sql.functions.array import OPERATORS
from noonmark.sql.functions.cast import cast
from noonmark.sql.functions.number.fit import fit
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Ask, Now, Parameter
from noonmark.sql.ir.effort import LITTLE, scalar_effort

Row = tuple[Any, ...]
Outer = Mapping[int, Row]

#: The scopes of an outer "row" that has the values of parameters, and of one that has the time.
PARAMETERS, NOW = -1, -2


def evaluate(scalar: s.Scalar, row: Row = (), outer: Outer | None = None) -> Any:
    """The value of the scalar for the row; `outer` has the rows of enclosing Applies by scope."""
    return _MEANINGS[type(scalar)](scalar, row, outer or {})


def constant(scalar: s.Scalar, clause: str, position: int | None = None) -> Any:
    """The value of what a plan depends on; asked while a statement is planned.

    Raises:
        TooComplex: it is more than a little work.
    """
    if scalar_effort(scalar) > LITTLE:
        raise TooComplex(
            f"an expression in {clause} cannot be much work",
            hint="Compute it with a SELECT first, and write its value.",
            position=position,
        )
    return evaluate(scalar)


def _column(scalar: s.ColumnRef, row: Row, _: Outer) -> Any:
    return row[scalar.index]


def _outer(scalar: s.OuterRef, _: Row, outer: Outer) -> Any:
    return outer[scalar.scope][scalar.index]


def _literal(scalar: s.Literal, _: Row, __: Outer) -> Any:
    return scalar.value


def _call(scalar: s.Call, row: Row, outer: Outer) -> Any:
    entry = scalar.entry
    values = [evaluate(each, row, outer) for each in scalar.arguments]
    if entry.strict and any(value is None for value in values):
        return None
    if entry.typed:
        types = tuple(each.type for each in scalar.arguments)
        return fit(entry.meaning(types, *values), scalar.type)
    return fit(entry.meaning(*values), scalar.type)


def _cast(scalar: s.Cast, row: Row, outer: Outer) -> Any:
    value = evaluate(scalar.operand, row, outer)
    return None if value is None else cast(value, scalar.operand.type, scalar.type)


def _compare(scalar: s.Compare, row: Row, outer: Outer) -> bool | None:
    left, right = evaluate(scalar.left, row, outer), evaluate(scalar.right, row, outer)
    if left is None or right is None:
        return None
    keys = sort_key(scalar.left.type)(left), sort_key(scalar.right.type)(right)
    return bool(OPERATORS[scalar.op](*keys))


def _is_distinct(scalar: s.IsDistinct, row: Row, outer: Outer) -> bool:
    left, right = evaluate(scalar.left, row, outer), evaluate(scalar.right, row, outer)
    if left is None or right is None:
        return left is not right
    return bool(sort_key(scalar.left.type)(left) != sort_key(scalar.right.type)(right))


def _junction(stop: bool) -> Callable[[Any, Row, Outer], bool | None]:
    """AND stops at FALSE, OR at TRUE."""

    def act(scalar: s.And | s.Or, row: Row, outer: Outer) -> bool | None:
        result: bool | None = not stop
        for part in scalar.parts:
            value: bool | None = evaluate(part, row, outer)
            if value is stop:
                return stop
            if value is None:
                result = None
        return result

    return act


def _not(scalar: s.Not, row: Row, outer: Outer) -> bool | None:
    value = evaluate(scalar.operand, row, outer)
    return None if value is None else not value


def _is(scalar: s.Is, row: Row, outer: Outer) -> bool:
    return evaluate(scalar.operand, row, outer) is scalar.value


#: Longer lists of literals are looked up, not walked through for every row.
_WALKED_MAX = 16
_LISTS_MAX = 64


@dataclass(frozen=True)
class _Listed:
    """The keys of a list of literals, and whether NULL is among them; `of` is whose they are."""

    of: s.InList
    keys: frozenset[Any]
    has_null: bool


_LISTS: dict[int, _Listed] = {}


def _listed(scalar: s.InList) -> _Listed | None:
    """The items of a list as a set; None where one is not a literal."""
    found = _LISTS.get(id(scalar))
    if found is not None and found.of is scalar:
        return found
    keys, has_null = set(), False
    for item in scalar.items:
        if not isinstance(item, s.Literal):
            return None
        has_null = has_null or item.value is None
        if item.value is not None:
            keys.add(sort_key(item.type)(item.value))
    if len(_LISTS) >= _LISTS_MAX:
        _LISTS.clear()
    made = _LISTS[id(scalar)] = _Listed(scalar, frozenset(keys), has_null)
    return made


def _in_list(scalar: s.InList, row: Row, outer: Outer) -> bool | None:
    value = evaluate(scalar.operand, row, outer)
    key = None if value is None else sort_key(scalar.operand.type)(value)
    listed = _listed(scalar) if len(scalar.items) > _WALKED_MAX else None
    if listed is not None:
        if key is not None and key in listed.keys:
            return True
        return None if value is None or listed.has_null else False
    unknown = value is None
    for item in scalar.items:
        other = evaluate(item, row, outer)
        if other is None:
            unknown = True
        elif key is not None and sort_key(item.type)(other) == key:
            return True
    return None if unknown else False


def _case(scalar: s.Case, row: Row, outer: Outer) -> Any:
    for branch in scalar.branches:
        if evaluate(branch.condition, row, outer) is True:
            return evaluate(branch.value, row, outer)
    return evaluate(scalar.default, row, outer)


def _coalesce(scalar: s.Coalesce, row: Row, outer: Outer) -> Any:
    for argument in scalar.arguments:
        value = evaluate(argument, row, outer)
        if value is not None:
            return value
    return None


def _make_array(scalar: s.MakeArray, row: Row, outer: Outer) -> tuple[Any, ...]:
    return tuple(evaluate(each, row, outer) for each in scalar.elements)


def _make_record(scalar: s.MakeRecord, row: Row, outer: Outer) -> tuple[Any, ...]:
    return tuple(evaluate(each, row, outer) for each in scalar.values)


def _field(scalar: s.FieldRef, row: Row, outer: Outer) -> Any:
    value = evaluate(scalar.record, row, outer)
    return None if value is None else value[scalar.index]


def _ask(scalar: Ask, row: Row, outer: Outer) -> Any:
    values = [evaluate(each, row, outer) for each in scalar.arguments]
    if scalar.entry.strict and any(value is None for value in values):
        return None
    return scalar.entry.meaning(*values)


def _parameter(scalar: Parameter, _: Row, outer: Outer) -> Any:
    if PARAMETERS not in outer:
        raise UsageError(f"${scalar.index} has no value here")
    return outer[PARAMETERS][scalar.index - 1]


def _now(_: Now, __: Row, outer: Outer) -> Any:
    if NOW not in outer:
        raise UsageError("mz_now() has no value here")
    return outer[NOW][0]


_MEANINGS: dict[type[s.Scalar], Callable[[Any, Row, Outer], Any]] = {
    s.ColumnRef: _column,
    s.OuterRef: _outer,
    s.Literal: _literal,
    s.Call: _call,
    s.Cast: _cast,
    s.Compare: _compare,
    s.IsDistinct: _is_distinct,
    s.And: _junction(stop=False),
    s.Or: _junction(stop=True),
    s.Not: _not,
    s.Is: _is,
    s.InList: _in_list,
    s.Case: _case,
    s.Coalesce: _coalesce,
    s.MakeArray: _make_array,
    s.MakeRecord: _make_record,
    s.FieldRef: _field,
    Ask: _ask,
    Parameter: _parameter,
    Now: _now,
}
