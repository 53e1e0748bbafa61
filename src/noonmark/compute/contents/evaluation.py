"""Relations computed by kernels, all rows at once: the operators' `contents`, from the bottom up.

Law: see the package. Rows have no times here (all are 0), and none is there less than once.

What a row cannot have a value for is in the errors: where there is one, the relation has no answer.

Where it runs: statement workers, and executors for the keys that changed (`by_kernel`); pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from noonmark.compute.kernel.updates import BEFORE, Errors, Rows
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.scalar.number import NO_KERNEL, NoKernel
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import Node, rebuild, walk

Inputs = Mapping[str, Rows]


def has_rules(relation: r.Relation) -> bool:
    """Whether there is a kernel for every part of a relation; some may still be `NoKernel`."""
    relations = (node for node in walk(relation) if isinstance(node, r.Relation))
    return all(operator_of(node).can(node) for node in relations)


def contents(relation: r.Relation, inputs: Inputs, errors: Errors) -> Rows:
    """The rows of a relation that `has_rules`; none that count where there are errors.

    Raises:
        NoKernel: the kernels have no answer; another engine does.
    """
    try:
        return ContentsEvaluation(inputs, errors).rows(relation)
    except NO_KERNEL as error:
        raise NoKernel from error


@dataclass
class ContentsEvaluation:
    """One evaluation: what is shared by name is computed once."""

    inputs: Inputs
    errors: Errors
    named: dict[str, Rows] = field(default_factory=dict)

    def rows(self, relation: r.Relation) -> Rows:
        """The rows of a relation."""
        return operator_of(relation).contents(relation, self)


def with_scan(relation: r.Relation, node: r.Relation, scan: r.Scan) -> r.Relation:
    """The relation with a scan in the place of one of its nodes."""

    def cut(each: Node) -> Node:
        if each is node:
            return scan
        return rebuild(each, cut) if isinstance(each, r.Relation) else each

    made = cut(relation)
    assert isinstance(made, r.Relation)
    return made


def by_kernel(node: r.Relation, sides: Sequence[Rows]) -> Rows | None:
    """An operator of rows that hold whole keys, at `BEFORE`; None where it is asked key by key.

    Inputs are contents: diffs are how often a row is there, and no row is there twice. Which keys
    have no answer only the meaning tells (`noonmark.compute.incremental.by_key`).
    """
    operator = operator_of(node)
    try:
        if operator.has_kernel(node):
            return operator.kernel(node, *sides)
        if not operator.can(node):
            return None
        alone, errors = operator.over_scans(node), Errors()
        inputs = {str(at): rows for at, rows in enumerate(sides)}
        made = operator.contents(alone, ContentsEvaluation(inputs, errors))
    except NO_KERNEL:
        return None
    return None if errors.found else made.at(BEFORE)
