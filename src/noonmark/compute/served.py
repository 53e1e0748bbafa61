"""Plans evaluated for users, row by row: the meaning, in time that follows the rows.

Law: ``contents(plan, collections)`` is ``evaluate(plan, collections)`` of
`noonmark.compute.reference`. That is written to be read, and is what answers are judged by; the
operators that it evaluates in more than n log n are evaluated in other words here: windows
(`served_window`) and recursion (`served_recursive`).

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from noonmark.compute.reference import MEANINGS, Meanings, Multiset, Row, evaluate, windowed
from noonmark.compute.served_recursive import recursive
from noonmark.compute.served_window import window
from noonmark.sql.ir import relation as r

OPERATORS: Meanings = {
    **MEANINGS,
    r.Window: partial(windowed, act=window),
    r.Recursive: recursive,
}


def contents(relation: r.Relation, collections: Mapping[str, Mapping[Row, int]]) -> Multiset:
    """The rows of the plan over the collections at one time.

    Raises:
        EvaluationError: the plan has no answer on these rows.
    """
    return evaluate(relation, collections, OPERATORS)
