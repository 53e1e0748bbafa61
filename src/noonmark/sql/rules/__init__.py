"""Rewriting of plans: small rules, in a visible list, until nothing changes.

Law: a rule gives a plan of the same schema that has the same answer on every input on which the
plan before has one. It never makes a plan fail that did not: an expression that may fail is not
moved to where it is asked of more rows. It may make a plan succeed that failed, where the value
that failed is not needed.

After `simplify` there is no `Apply` and no `OuterRef` in a plan.
"""

from __future__ import annotations

from collections.abc import Callable

from noonmark.sql.ir.relation import Relation
from noonmark.sql.rules.decorrelate import decorrelate
from noonmark.sql.rules.fold import fold
from noonmark.sql.rules.imply import imply
from noonmark.sql.rules.inline import inline
from noonmark.sql.rules.join_keys import join_keys
from noonmark.sql.rules.merge import merge
from noonmark.sql.rules.order_joins import order_joins
from noonmark.sql.rules.prune import prune
from noonmark.sql.rules.push_filter import push_filter

Rule = Callable[[Relation], Relation]

TIDY: tuple[Rule, ...] = (fold, push_filter, merge)
RULES: tuple[tuple[Rule, ...], ...] = (
    (inline,),
    (fold,),
    (decorrelate,),
    TIDY,
    (order_joins,),
    (imply, *TIDY),
    (join_keys,),
    (prune, *TIDY),
)
"""Each group is applied until it changes nothing, then the next."""

ROUNDS_MAX = 50


def simplify(relation: Relation) -> Relation:
    """The plan after all rules."""
    for rules in RULES:
        relation = _fixpoint(relation, rules)
    return relation


def _fixpoint(relation: Relation, rules: tuple[Rule, ...]) -> Relation:
    for _ in range(ROUNDS_MAX):
        before = relation
        for rule in rules:
            relation = rule(relation)
        if relation == before:
            return relation
    raise AssertionError("the rules do not come to an end")
