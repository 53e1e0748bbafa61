"""How much work a scalar is at most, of one row: what is little may be asked anywhere.

The unit is about the value of one node of an expression, a microsecond. It is a bound, not a guess.
What has no bound here, or a large one, is asked where it can be ended: in a worker.
"""

from __future__ import annotations

import math

from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Ask
from noonmark.sql.ir.node import Node, children

#: More than this is not done beside others: in the server's own process.
LITTLE = 3_000
NEVER = math.inf
#: How long texts of rows are, as far as is known before they are read.
_TEXT = 20


def scalar_effort(*scalars: Node) -> float:
    """What it takes to ask scalars of one row."""
    total = 0.0
    lengths: dict[int, int] = {}
    stack: list[Node] = list(scalars)
    while stack and total <= LITTLE:
        node = stack.pop()
        total += 1
        if isinstance(node, s.Call):
            total += _call(node, lengths)
        elif isinstance(node, s.Cast):
            total += s.length(node.operand, lengths)  # a character of nested JSON takes so long
        elif isinstance(node, s.Literal):
            total += len(node.value) / 1_000 if isinstance(node.value, str | bytes | tuple) else 0
        elif isinstance(node, Ask):
            total += NEVER if node.entry.waits else 50  # the catalog is looked at
        stack += children(node)
    return total


def _call(call: s.Call, lengths: dict[int, int]) -> float:
    size = call.size / 1_000
    steps = call.entry.steps
    if steps is None:
        return size
    text, pattern = call.arguments[:2]
    if not isinstance(pattern, s.Literal):
        return NEVER  # it is compiled for every row
    return size + s.pattern_steps(steps, pattern, max(_TEXT, s.length(text, lengths)))
