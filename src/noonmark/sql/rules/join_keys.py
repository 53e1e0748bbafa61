"""Join keys: the parts of a join's condition that are equalities between the two sides.

``l(left) = r(right)`` becomes a `JoinKey`, and ``l IS NOT DISTINCT FROM r`` one that takes NULLs
for equal; the rest stays in `on`. A side that may fail stays too: a key is asked of every row, a
condition only of pairs.
"""

from __future__ import annotations

from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.relation import Join, JoinKey, Relation
from noonmark.sql.rules.rewrite import bottom_up, onto


def _keys(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or relation.on == s.TRUE:
        return relation
    width = len(relation.left.schema)
    keys: list[JoinKey] = []
    rest: list[s.Scalar] = []
    for part in s.conjuncts(relation.on):
        key = None if s.may_fail(part) else as_key(part, width, relation)
        if key is None:
            rest.append(part)
        else:
            keys.append(key)
    if not keys:
        return relation
    distinct = tuple(dict.fromkeys((*relation.keys, *keys)))
    return Join(relation.kind, relation.left, relation.right, distinct, s.conjunction(rest))


def as_key(part: s.Scalar, width: int, join: Join) -> JoinKey | None:
    """The key that a part of a condition is, if it is one."""
    match part:
        case s.Compare(op="=", left=a, right=b):
            null_equal = False
        case s.Not(operand=s.IsDistinct(left=a, right=b)):
            null_equal = True
        case _:
            return None
    sides = [_side(each, width) for each in (a, b)]
    if sides == ["right", "left"]:
        a, b = b, a
    elif sides != ["left", "right"]:
        return None
    left = onto(a, join.left.schema, lambda at: at)
    right = onto(b, join.right.schema, lambda at: at - width)
    return JoinKey(left, right, null_equal and (left.nullable or right.nullable))


def _side(scalar: s.Scalar, width: int) -> str | None:
    columns = s.columns_of(scalar)
    if not columns:
        return None
    if all(at < width for at in columns):
        return "left"
    return "right" if all(at >= width for at in columns) else None


join_keys = bottom_up(_keys)
