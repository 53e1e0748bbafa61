"""Fold: scalars that do not depend on the row become literals, and conditions get simpler.

f(1, 2)                 its value, unless it fails: then it fails for every row, as before
a AND TRUE, a OR FALSE  a
a AND FALSE             FALSE
NOT NOT a               a;      NOT (a < b)    a >= b
a IS NULL               FALSE, if a is never NULL;   a IS TRUE    a, likewise
CASE, COALESCE          without the branches that are never taken
Filter by TRUE          its input;   by FALSE or NULL    no rows
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Ask, Now, Parameter
from noonmark.sql.ir.effort import call_effort
from noonmark.sql.ir.node import Node, children, rebuild, walk_once
from noonmark.sql.ir.relation import Constant, Filter, Relation
from noonmark.sql.rules.rewrite import bottom_up
from noonmark.sql.rules.stable import is_stable

#: A longer text is not part of a plan: it is made when the plan is run.
SIZE_MAX = 64 << 10
#: A pattern that takes so many microseconds, and a cast of so long a text, are left to the run.
STEPS_MAX = 1_000

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def fold_scalar(scalar: s.Scalar) -> s.Scalar:
    """The scalar, simpler."""

    def act(node: Any) -> Node:
        changed = rebuild(node, act)
        return _simpler(changed) if isinstance(changed, s.Scalar) else changed

    result = act(scalar)
    assert isinstance(result, s.Scalar)
    return result


def _simpler(scalar: s.Scalar) -> s.Scalar:
    if isinstance(scalar, s.Literal | s.ColumnRef | s.OuterRef | Parameter | Now | Ask):
        return scalar
    if _is_constant(scalar) and _is_quick(scalar):
        try:
            value = evaluate(scalar)
        except EvaluationError:
            return scalar
        stays = value is None and is_stable(scalar)
        return scalar if stays and not _is_null(scalar) else s.Literal(scalar.type, value)
    if _is_null(scalar):
        return s.Literal(scalar.type, None)
    match scalar:
        case s.And() | s.Or():
            return _junction(scalar)
        case s.Not():
            return _not(scalar)
        case s.Is():
            return _is(scalar)
        case s.Case():
            return _case(scalar)
        case s.Coalesce():
            return _coalesce(scalar)
        case s.Compare():
            return _date_compare(scalar)
    return scalar


#: Not functions for PostgreSQL: they are computed when all of their parts are constant.
_SUBSCRIPTS = ("subscript", "slice")


def _is_null(scalar: s.Scalar) -> bool:
    """Whether a strict function, or a cast, has an argument that is always NULL.

    The others are not asked then; only what fails without being asked fails still.
    """
    match scalar:
        case s.Call() if scalar.entry.name in _SUBSCRIPTS:
            return False
        case s.Call(arguments=(_, s.MakeArray())) if scalar.entry.name == "#>":
            return False  # a subscript of a document
        case s.Call(arguments=arguments) if scalar.entry.strict:
            parts: tuple[s.Scalar, ...] = arguments
        case s.Call(arguments=arguments) if scalar.entry.null_by_first:
            parts = arguments[:1]
        case s.Compare(left=left, right=right):
            parts = (left, right)
        case s.Cast(operand=operand) if not isinstance(operand.type, t.Array | t.Record):
            parts = (operand,)
        case _:
            return False
    if not any(isinstance(each, s.Literal) and each.value is None for each in parts):
        return False
    return all(next(failing(each), None) is None for each in parts)


def failing(scalar: s.Scalar) -> Iterator[s.Scalar]:
    """The parts of a folded scalar that fail whatever the row is, in the order of evaluation.

    Also those that a condition of the row may leave out: PostgreSQL computes constants while it
    plans, and only conditions that are constant themselves keep it from one.
    """
    for part in children(scalar):
        inner = children(part) if isinstance(part, s.When) else (part,)
        for each in inner:
            if isinstance(each, s.Scalar):
                yield from failing(each)
    kinds = (s.Call, s.Cast, s.Compare)
    constant = isinstance(scalar, kinds) and _is_constant(scalar) and _is_quick(scalar)
    if constant and not is_stable(scalar):
        yield scalar


def refuse_constants(relation: Relation) -> None:
    """Raise what some constant of a simplified plan raises, before any row is looked at."""
    for node in walk_once(relation):
        if isinstance(node, Relation):
            for scalar in _scalars(node):
                for found in failing(scalar):
                    evaluate(found)


def _scalars(node: Any) -> Iterator[s.Scalar]:
    """Those of one relation, also of its calls and keys."""
    for part in children(node):
        if isinstance(part, s.Scalar):
            yield part
        elif not isinstance(part, Relation):
            yield from _scalars(part)


def _is_quick(scalar: s.Scalar) -> bool:
    """Whether asking for it is nothing: a plan must not take longer than its text is long."""
    if isinstance(scalar, s.Cast):
        return s.length(scalar.operand) <= STEPS_MAX
    if not isinstance(scalar, s.Call):
        return True
    return call_effort(scalar) <= STEPS_MAX and scalar.size <= SIZE_MAX


def _is_constant(scalar: s.Scalar) -> bool:
    parts = list(children(scalar))
    nested = [x for part in parts for x in (children(part) if isinstance(part, s.When) else [part])]
    return all(isinstance(each, s.Literal) for each in nested)


def _junction(scalar: s.And | s.Or) -> s.Scalar:
    kind = type(scalar)
    neutral, decisive = (s.TRUE, s.FALSE) if kind is s.And else (s.FALSE, s.TRUE)
    flat: list[s.Scalar] = []
    for part in scalar.parts:
        flat += part.parts if type(part) is kind else [part]
    kept = list(dict.fromkeys(part for part in flat if part != neutral))
    if decisive in kept:
        before = kept[: kept.index(decisive)]
        wrong = [part for part in before if next(failing(part), None) is not None]
        return kind((*wrong, decisive)) if wrong else decisive
    if len(kept) == 1:
        return kept[0]
    if not kept:
        return neutral
    return s.And(tuple(kept)) if kind is s.And else _factored(kept)


def _factored(parts: list[s.Scalar]) -> s.Scalar:
    """The OR of the parts, with what all of them demand taken out."""
    lists = [list(s.conjuncts(part)) for part in parts]
    common = [p for p in lists[0] if all(p in each for each in lists) and not s.may_fail(p)]
    if not common:
        return s.Or(tuple(parts))
    rest = [s.conjunction([p for p in each if p not in common]) for each in lists]
    either = _junction(s.Or(tuple(rest)))
    return s.conjunction([*common, *s.conjuncts(either)])


def _not(scalar: s.Not) -> s.Scalar:
    inner = scalar.operand
    if isinstance(inner, s.Not):
        return inner.operand
    if isinstance(inner, s.Compare):
        return s.Compare(_OPPOSITE[inner.op], inner.left, inner.right)
    return scalar


def _is(scalar: s.Is) -> s.Scalar:
    if scalar.operand.nullable:
        return scalar
    if scalar.value is None:
        return scalar if s.may_fail(scalar.operand) else s.FALSE
    return scalar.operand if scalar.value else _simpler(s.Not(scalar.operand))


def _case(scalar: s.Case) -> s.Scalar:
    kept: list[s.When] = []
    for branch in scalar.branches:
        if isinstance(branch.condition, s.Literal):
            if branch.condition.value is True:
                return s.Case(tuple(kept), branch.value) if kept else branch.value
            continue
        kept.append(branch)
    return s.Case(tuple(kept), scalar.default) if kept else scalar.default


def _coalesce(scalar: s.Coalesce) -> s.Scalar:
    kept: list[s.Scalar] = []
    for argument in scalar.arguments:
        if isinstance(argument, s.Literal) and argument.value is None:
            continue
        kept.append(argument)
        if not argument.nullable:
            break
    if not kept:
        return s.Literal(scalar.type, None)
    return kept[0] if len(kept) == 1 else s.Coalesce(tuple(kept))


_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
# A date stands for its midnight: before a later time of the day means up to that day.
_BY_DAY = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}


def _date_compare(scalar: s.Compare) -> s.Scalar:
    match scalar:
        case s.Compare(left=s.Literal() as literal, right=s.Cast(operand=date) as cast):
            op = _FLIPPED[scalar.op]
        case s.Compare(left=s.Cast(operand=date) as cast, right=s.Literal() as literal):
            op = scalar.op
        case _:
            return scalar
    if not isinstance(date.type, t.Date) or not isinstance(literal.value, dt.datetime):
        return scalar
    if not isinstance(cast.type, t.Timestamp | t.TimestampTz):
        return scalar
    day = s.Literal(t.Date(), literal.value.date())
    if literal.value.time() == dt.time():
        return s.Compare(op, date, day)
    return s.Compare(_BY_DAY[op], date, day) if op in _BY_DAY else scalar


def _fold(relation: Relation) -> Relation:
    def act(node: Any) -> Node:
        if isinstance(node, Relation):
            return node
        return fold_scalar(node) if isinstance(node, s.Scalar) else rebuild(node, act)

    changed = rebuild(relation, act)
    if isinstance(changed, Filter) and isinstance(changed.predicate, s.Literal):
        if changed.predicate.value is True:
            return changed.input
        return Constant(changed.schema, ())
    return changed


fold = bottom_up(_fold)
