"""Inner joins of many inputs as one: a group, and the paths that walk it.

A group is what a tree of inner joins is without the tree: leaves, equalities between them,
predicates over all, and outputs.

Law: [Group](outputs of l1 + ... + ln) = [L1](l1) * ... * [Ln](ln), summed over all combinations for
which the equalities and predicates hold. So

    d(Group) = the sum over i of L1_new x ... x Li-1_new x dLi x Li+1_old x ... x Ln_old

where a combination is there from the latest of its times on: a combination of old rows and changes
with at least one change is counted once, at the last leaf of which it has a change.

A *path* begins with some leaf, and reaches each other leaf by a key whose values are known by then.
So nothing between the leaves is ever stored. Only what cannot fail is flattened: an error of a pair
is there whatever the pair meets next. And only what does not follow the time: a row may have its
turn when nothing changed.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from noonmark.compute.plan.memo import once
from noonmark.compute.plan.operators import operator_of
from noonmark.rows.exact import is_exact
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import (
    Compare,
    IsDistinct,
    Not,
    Scalar,
    column,
    columns_of,
    conjuncts,
    map_columns,
    may_fail,
    shift,
)

Keys = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Equality:
    """A scalar of one leaf equals a scalar of another, each over the columns of its leaf."""

    left: tuple[int, Scalar]
    right: tuple[int, Scalar]
    null_equal: bool

    def side(self, leaf: int) -> Scalar | None:
        """The scalar over a leaf."""
        for at, scalar in (self.left, self.right):
            if at == leaf:
                return scalar
        return None


@dataclass(frozen=True)
class MultiwayJoin:
    """See the module. Predicates and outputs are over the columns of all leaves, side by side.

    Attributes:
        checks: scalars over a leaf that may fail: the keys of a join of two leaves.
        loud: the predicates whose errors are errors of the group.
        quiet: those that hold only for pairs; their errors were found by the checks.
    """

    leaves: tuple[r.Relation, ...]
    equalities: tuple[Equality, ...]
    loud: tuple[Scalar, ...]
    quiet: tuple[Scalar, ...]
    checks: tuple[tuple[int, Scalar], ...]
    outputs: tuple[Scalar, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the columns of each leaf begin."""
        widths = [len(leaf.schema) for leaf in self.leaves]
        return tuple(sum(widths[:at]) for at in range(len(widths) + 1))

    @cached_property
    def predicates(self) -> tuple[Scalar, ...]:
        """All that cannot fail of what has to hold, the equalities too, over all columns."""
        equal = []
        for each in self.equalities:
            sides = [shift(scalar, self.starts[at]) for at, scalar in (each.left, each.right)]
            same = Not(IsDistinct(*sides)) if each.null_equal else Compare("=", *sides)
            equal.append(same)
        return (*equal, *self.quiet, *(part for part in self.loud if not may_fail(part)))

    @cached_property
    def asked(self) -> dict[tuple[Scalar, ...], MultiwayJoin]:
        """Of each key that it was asked by, the group with that key (`asked_by`)."""
        return {}

    @cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """For each of the predicates, the leaves that it is about."""
        return tuple(
            frozenset(self.place(at)[0] for at in columns_of(each)) for each in self.predicates
        )

    def leaf_of(self, scalar: Scalar) -> int | None:
        """The one leaf that a scalar over all columns is about."""
        found = {self.place(index)[0] for index in columns_of(scalar)}
        return found.pop() if len(found) == 1 else None

    def place(self, index: int) -> tuple[int, int]:
        """The leaf of a column, and its place there."""
        leaf = max(at for at in range(len(self.leaves)) if self.starts[at] <= index)
        return leaf, index - self.starts[leaf]


@dataclass(frozen=True)
class Step:
    """The next leaf of a path, and the key by which it is asked for.

    Attributes:
        leaf: its number.
        key: scalars over the leaf.
        probes: their values, scalars over the columns of all leaves.
        null_equal: for each, whether NULL finds NULL.
    """

    leaf: int
    key: tuple[Scalar, ...]
    probes: tuple[Scalar, ...]
    null_equal: tuple[bool, ...]


Usable = Callable[[r.Relation, Scalar], bool]


@once
def multiway_of(node: r.Join) -> MultiwayJoin:
    """The group of an inner join, as far down as joins reach."""
    if _fails(node):
        return _joined(node, _leaf(node.left), _leaf(node.right))
    return _joined(node, flat(node.left), flat(node.right))


def multiway_at(node: r.Relation) -> MultiwayJoin | None:
    """The group that an operator is: an inner join, or a projection of one without one row."""
    return operator_of(node).multiway(node)


@once
def without_row(node: r.Project) -> MultiwayJoin | None:
    """The group of a projection of an inner join that leaves out a leaf of one row; else None."""
    below = node.input
    if not isinstance(below, r.Join) or operator_of(below).flat(below) is None:
        return None
    if any(map(may_fail, node.scalars)):
        return None
    group = multiway_of(below)
    made = with_outputs(group, node.scalars)
    shown = {made.place(at)[0] for each in made.outputs for at in columns_of(each)}
    left_out = [leaf for at, leaf in enumerate(made.leaves) if at not in shown]
    return made if any(map(is_one_row, left_out)) else None


def is_one_row(node: r.Relation, *, exactly: bool = False) -> bool:
    """Whether all of a relation is at most one row; or exactly one."""
    return operator_of(node).is_one_row(node, exactly=exactly)


def _fails(node: r.Join) -> bool:
    return may_fail(node.on) or any(may_fail(k.left) or may_fail(k.right) for k in node.keys)


def _leaf(node: r.Relation) -> MultiwayJoin:
    outputs = tuple(column(at, each) for at, each in enumerate(node.schema))
    return MultiwayJoin((node,), (), (), (), (), outputs)


def flat(node: r.Relation) -> MultiwayJoin:
    """What a relation adds to the join above it: its own inputs, or itself."""
    return operator_of(node).flat(node) or _leaf(node)


def flat_join(node: r.Join) -> MultiwayJoin | None:
    """The group of an inner join that cannot fail."""
    return None if _fails(node) else multiway_of(node)


def filtered(group: MultiwayJoin, predicate: Scalar) -> MultiwayJoin:
    """The combinations for which a predicate over the outputs holds."""
    return replace(group, loud=group.loud + tuple(conjuncts(_over(predicate, group.outputs))))


def with_outputs(group: MultiwayJoin, scalars: Sequence[Scalar]) -> MultiwayJoin:
    """The combinations with scalars over the outputs instead of them."""
    return replace(group, outputs=tuple(_over(each, group.outputs) for each in scalars))


def _over(scalar: Scalar, outputs: Sequence[Scalar]) -> Scalar:
    return map_columns(scalar, lambda ref: outputs[ref.index])


def _joined(node: r.Join, left: MultiwayJoin, right: MultiwayJoin) -> MultiwayJoin:
    width = left.starts[-1]
    moved = tuple(shift(each, width) for each in right.outputs)
    both = MultiwayJoin(
        left.leaves + right.leaves,
        left.equalities + tuple(_later(each, len(left.leaves)) for each in right.equalities),
        left.loud + tuple(shift(each, width) for each in right.loud),
        (),
        (),
        left.outputs + moved,
    )
    equalities: list[Equality] = []
    quiet: list[Scalar] = []
    checks: list[tuple[int, Scalar]] = []
    for key in node.keys:
        sides = _over(key.left, left.outputs), _over(key.right, moved)
        leaves = both.leaf_of(sides[0]), both.leaf_of(sides[1])
        checks += [(at, side) for at, side in enumerate((key.left, key.right)) if may_fail(side)]
        exact = all(is_exact(side.type) and not may_fail(side) for side in sides)
        if exact and leaves[0] is not None and leaves[1] is not None:
            left_end = leaves[0], shift(sides[0], -both.starts[leaves[0]])
            right_end = leaves[1], shift(sides[1], -both.starts[leaves[1]])
            equalities.append(Equality(left_end, right_end, key.null_equal))
        elif key.null_equal:
            quiet.append(Not(IsDistinct(*sides)))
        else:
            quiet.append(Compare("=", *sides))
    loud = tuple(conjuncts(_over(node.on, both.outputs))) if not may_fail(node.on) else (node.on,)
    return MultiwayJoin(
        both.leaves,
        (*both.equalities, *equalities),
        (*both.loud, *loud),
        (*left.quiet, *(shift(each, width) for each in right.quiet), *quiet),
        tuple(checks),
        both.outputs,
    )


def _later(equality: Equality, by: int) -> Equality:
    (a, x), (b, y) = equality.left, equality.right
    return Equality((a + by, x), (b + by, y), equality.null_equal)


# -- paths --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Offer:
    """A step that may come next; `unique` if at most one row has its key."""

    step: Step
    unique: bool


class Orders:
    """The orders in which the leaves of a group can be reached.

    Law: which leaves are reached without a key does not depend on the order in which those are
    reached that have one: a key that can be asked by stays one when more is known.
    """

    def __init__(self, group: MultiwayJoin, keys: Keys, can_push_down: Usable) -> None:
        self._group = group
        self._keys = keys
        self._usable = can_push_down
        self._known: dict[frozenset[int], tuple[Offer, ...]] = {}

    def after(self, reached: Sequence[int]) -> tuple[Offer, ...]:
        """What may come next when some leaves are reached, what the plan says is cheapest first.

        A leaf of which at most one row has the key comes first: it makes no more rows than there
        are. Then one whose rows belong to one row that is known, before one whose rows are many for
        each of many; and one that is filtered before one that is not.
        """
        name = frozenset(reached)
        if name not in self._known:
            left = [at for at in range(len(self._group.leaves)) if at not in name]
            steps = [_step(self._group, reached, leaf, self._usable) for leaf in left]
            steps.sort(key=lambda step: _rank(self._group, step, self._keys))
            self._known[name] = tuple(Offer(step, self._is_unique(step)) for step in steps)
        return self._known[name]

    def _is_unique(self, step: Step) -> bool:
        return unique(self._group.leaves[step.leaf], step.key, self._keys)


@once
def orders(group: MultiwayJoin, keys: Keys, can_push_down: Usable) -> Orders:
    """The orders of a group; `keys` are those of the collections."""
    return Orders(group, keys, can_push_down)


@once
def path(group: MultiwayJoin, first: int, keys: Keys, can_push_down: Usable) -> tuple[Step, ...]:
    """The steps that reach all other leaves, from the first: the order that the plan suggests."""
    steps: list[Step] = []
    reached = [first]
    while len(reached) < len(group.leaves):
        best = orders(group, keys, can_push_down).after(reached)[0].step
        steps.append(best)
        reached.append(best.leaf)
    return tuple(steps)


def _rank(group: MultiwayJoin, step: Step, keys: Keys) -> tuple[bool, bool, bool, bool, int]:
    leaf = group.leaves[step.leaf]
    alone = bool(operator_of(leaf).sides(leaf)) and is_one_row(leaf, exactly=True)
    return (
        not step.key and not alone,
        not unique(leaf, step.key, keys),
        not _fromunique(group, step, keys),
        not operator_of(leaf).is_narrow(leaf),
        step.leaf,
    )


def _fromunique(group: MultiwayJoin, step: Step, keys: Keys) -> bool:
    """Whether what is asked for belongs to one row of a leaf: its lines, not all of its kind."""
    known: dict[int, list[Scalar]] = {}
    for probe in step.probes:
        leaf = group.leaf_of(probe)
        if leaf is not None:
            known.setdefault(leaf, []).append(shift(probe, -group.starts[leaf]))
    return any(unique(group.leaves[leaf], own, keys) for leaf, own in known.items())


def _step(group: MultiwayJoin, reached: Sequence[int], leaf: int, can_push_down: Usable) -> Step:
    key: list[Scalar] = []
    probes: list[Scalar] = []
    nulls: list[bool] = []
    for scalar, probe, null_equal in _links(group, reached, leaf):
        if scalar not in key and can_push_down(group.leaves[leaf], scalar):
            key.append(scalar)
            probes.append(probe)
            nulls.append(null_equal)
    return Step(leaf, tuple(key), tuple(probes), tuple(nulls))


def _links(
    group: MultiwayJoin, reached: Sequence[int], leaf: int
) -> list[tuple[Scalar, Scalar, bool]]:
    """Scalars of the leaf with what is known to equal them, also by way of other leaves."""
    found: list[tuple[Scalar, Scalar, bool]] = []
    for each in group.equalities:
        own = each.side(leaf)
        other = each.right if each.left[0] == leaf else each.left
        if own is None:
            continue
        for (at, scalar), null_equal in _same(group, other, null_equal=each.null_equal):
            if at in reached:
                found.append((own, shift(scalar, group.starts[at]), null_equal))
                break
    return found


def _same(
    group: MultiwayJoin, end: tuple[int, Scalar], *, null_equal: bool
) -> list[tuple[tuple[int, Scalar], bool]]:
    """Everything that equals one end of an equality, and whether NULL equals NULL all the way.

    Where it does not, a NULL somewhere on the way is in no combination: so none is missed.
    """
    reached = [(end, null_equal)]
    seen = {end}
    for at, nulls in reached:
        for each in group.equalities:
            for a, b in ((each.left, each.right), (each.right, each.left)):
                if a == at and b not in seen:
                    seen.add(b)
                    reached.append((b, nulls and each.null_equal))
    return reached


def unique(relation: r.Relation, key: Sequence[Scalar], keys: Keys) -> bool:
    """Whether, if the keys of collections are keys, at most one row has the key's values."""
    return operator_of(relation).is_unique(relation, key, keys)
