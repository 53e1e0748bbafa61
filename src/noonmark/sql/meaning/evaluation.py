"""Plans evaluated for users, row by row: the meaning, in time that follows the rows.

Law: ``contents(plan, collections)`` is ``evaluate(plan, collections)`` of
`noonmark.sql.meaning.relation`. That is written to be read, and is what answers are judged by; the
operators that it evaluates in more than n log n are evaluated in other words here: windows
(`served_window`), recursion (`served_recursive`), and joins by an equality that may fail, which the
rules leave among the conditions of pairs.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from noonmark.errors import EvaluationError
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import conjunction, conjuncts, may_fail
from noonmark.sql.meaning.relation import (
    MEANINGS,
    Inputs,
    Meanings,
    Multiset,
    Row,
    evaluate,
    windowed,
)
from noonmark.sql.meaning.semi_naive import recursive
from noonmark.sql.meaning.window_frames import window
from noonmark.sql.rules.join_keys import as_key


def _join(relation: r.Join, inputs: Inputs) -> Multiset:
    """By all equalities of the two sides; if one of them fails on some row, pair by pair.

    While nothing fails, a pair whose sides are not equal is none, and the rest is not asked of it.
    """
    width = len(relation.left.schema)
    parts = [(part, as_key(part, width, relation)) for part in conjuncts(relation.on)]
    keys = [key for _, key in parts if key is not None]
    rest = [part for part, key in parts if key is None]
    if keys and not any(map(may_fail, rest)):
        by_key = replace(relation, keys=(*relation.keys, *keys), on=conjunction(rest))
        try:
            return MEANINGS[r.Join](by_key, inputs)
        except EvaluationError:
            pass  # perhaps of a row that meets no other
    return MEANINGS[r.Join](relation, inputs)


OPERATORS: Meanings = {
    **MEANINGS,
    r.Join: _join,
    r.Window: partial(windowed, act=window),
    r.Recursive: recursive,
}


def contents(relation: r.Relation, collections: Mapping[str, Mapping[Row, int]]) -> Multiset:
    """The rows of the plan over the collections at one time.

    Raises:
        EvaluationError: the plan has no answer on these rows.
    """
    return evaluate(relation, collections, OPERATORS)
