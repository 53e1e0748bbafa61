"""How much work a scalar is at most, of one row: what is little may be asked anywhere.

The unit is about the value of one node of an expression, a microsecond. It is a bound, not a guess.
What has no bound here, or a large one, is asked where it can be ended: in a worker.
"""

from __future__ import annotations

import math

from noonmark.rows.value import weight
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Ask
from noonmark.sql.ir.node import Node, children

#: More than this is not done beside others: in the server's own process.
LITTLE = 3_000
NEVER = math.inf
#: How long texts of rows are, as far as is known before they are read.
_TEXT = 20
#: What is called with more than so many characters may take their square, or more: unless the
#: function says that it is linear, there is no bound.
LONG = 500


def scalar_effort(*scalars: Node, longest: int = 0) -> float:
    """What it takes to ask scalars of one row, whose longest value has so many characters."""
    total = 0.0
    lengths: dict[int, int] = {}
    stack: list[Node] = list(scalars)
    while stack and total <= LITTLE:
        node = stack.pop()
        total += 1
        if isinstance(node, s.Call):
            total += _call(node, longest, lengths)
        elif isinstance(node, s.Cast):
            total += s.length(node.operand, lengths)  # a character of nested JSON takes so long
        elif isinstance(node, s.Literal):
            total += weight(node.value) / 1_000
        elif isinstance(node, Ask):
            total += NEVER if node.entry.waits else 50  # the catalog is looked at
        stack += children(node)
    return total


def call_effort(call: s.Call) -> float:
    """What it takes to ask a call itself, its arguments aside."""
    return _call(call, 0, {})


def _call(call: s.Call, longest: int, lengths: dict[int, int]) -> float:
    size = call.size / 1_000
    entry, steps = call.entry, call.entry.steps
    given = longest + sum([s.length(each, lengths) for each in call.arguments])
    if given > LONG and not entry.linear and steps is None:
        return NEVER
    if steps is None:
        return size + given / 100
    text, pattern = call.arguments[:2]
    if not isinstance(pattern, s.Literal) or weight(pattern.value) > LONG:
        return NEVER  # it is compiled, for every row
    return size + s.pattern_steps(steps, pattern, max(_TEXT, longest, s.length(text, lengths)))
