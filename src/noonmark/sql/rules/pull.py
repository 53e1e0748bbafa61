"""Pull: the conditions of a relation that refer to the row outside, taken off and handed up.

Law: let ``pull(R) = (R', conditions, places)``. For every row outside, R is the rows of R' that
meet the conditions, seen through `places`: column i of R is column places[i] of R'. R' does not
refer to the row outside.

Possible through Filter, Project, inner Join, and the left side of a semi or anti join, whose rows
are kept or not one by one; None if a reference stands anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.rules.outer import free, lift
from noonmark.sql.rules.rewrite import columns, filtered


@dataclass(frozen=True)
class Pulled:
    """A relation without references to the row outside, and the conditions that had them."""

    relation: r.Relation
    conditions: list[s.Scalar]
    places: list[int]


def pull(relation: r.Relation, scope: int) -> Pulled | None:
    """The relation and its conditions apart; None if they cannot be told apart."""
    if free(relation, scope):
        return Pulled(relation, [], list(range(len(relation.schema))))
    if isinstance(relation, r.Filter):
        return _filter(relation, scope)
    if isinstance(relation, r.Project):
        return _project(relation, scope)
    if isinstance(relation, r.Join) and relation.kind is r.JoinKind.INNER:
        return _join(relation, scope)
    if isinstance(relation, r.Join) and relation.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return _semi_join(relation, scope)
    return None


def _seen(scalar: s.Scalar, pulled: Pulled) -> s.Scalar:
    """A scalar over the relation as one over what is left of it."""
    row = columns(pulled.relation.schema)
    return lift(scalar, -1, [], [row[at] for at in pulled.places])


def _filter(relation: r.Filter, scope: int) -> Pulled | None:
    below = pull(relation.input, scope)
    if below is None:
        return None
    parts = [_seen(part, below) for part in s.conjuncts(relation.predicate)]
    own = [part for part in parts if free(part, scope)]
    handed = [part for part in parts if not free(part, scope)]
    return Pulled(filtered(below.relation, own), below.conditions + handed, below.places)


def _project(relation: r.Project, scope: int) -> Pulled | None:
    """The projection, with the columns that conditions use behind its own."""
    below = pull(relation.input, scope)
    if below is None or not all(free(each, scope) for each in relation.scalars):
        return None
    used = sorted({at for each in below.conditions for at in s.columns_of(each)})
    row = columns(below.relation.schema)
    scalars = [_seen(each, below) for each in relation.scalars] + [row[at] for at in used]
    names = r.distinct_names([*relation.names, *(below.relation.schema.names[at] for at in used)])
    project = r.Project(below.relation, tuple(scalars), tuple(names))
    count = len(relation.scalars)
    made = columns(project.schema)
    moved = dict(zip(used, made[count:], strict=True))
    conditions = [s.map_columns(each, lambda ref: moved[ref.index]) for each in below.conditions]
    return Pulled(project, conditions, list(range(count)))


def _join(relation: r.Join, scope: int) -> Pulled | None:
    left, right = pull(relation.left, scope), pull(relation.right, scope)
    if left is None or right is None:
        return None
    width = len(left.relation.schema)
    pairs = r.Join(r.JoinKind.INNER, left.relation, right.relation)
    row = columns(pairs.schema)
    places = [*left.places, *(at + width for at in right.places)]
    seen = [row[at] for at in places]
    equal = [_equality(key, len(relation.left.schema)) for key in relation.keys]
    parts = [lift(part, -1, [], seen) for part in (*equal, *s.conjuncts(relation.on))]
    own = [part for part in parts if free(part, scope)]
    handed = [part for part in parts if not free(part, scope)]
    handed += left.conditions + [s.shift(each, width) for each in right.conditions]
    join = r.Join(r.JoinKind.INNER, left.relation, right.relation, on=s.conjunction(own))
    return Pulled(join, handed, places)


def _semi_join(relation: r.Join, scope: int) -> Pulled | None:
    left = pull(relation.left, scope)
    parts: list[s.Scalar] = [*(key.left for key in relation.keys), relation.on]
    if left is None or not free(relation.right, scope):
        return None
    if not all(free(part, scope) and not s.may_fail(part) for part in parts):
        return None  # it would be asked of rows that the conditions leave out
    row = columns(r.Join(r.JoinKind.INNER, left.relation, relation.right).schema)
    seen = [*(row[at] for at in left.places), *row[len(left.relation.schema) :]]
    keys = [r.JoinKey(_seen(k.left, left), k.right, k.null_equal) for k in relation.keys]
    on = lift(relation.on, -1, [], seen)
    join = r.Join(relation.kind, left.relation, relation.right, tuple(keys), on=on)
    return Pulled(join, left.conditions, left.places)


def _equality(key: r.JoinKey, width: int) -> s.Scalar:
    right = s.shift(key.right, width)
    if key.null_equal:
        return s.Not(s.IsDistinct(key.left, right))
    return s.Compare("=", key.left, right)
