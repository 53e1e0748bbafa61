"""Recursive queries by what each round adds.

Law: ``recursive(relation, inputs)`` is what `noonmark.sql.meaning.relation` says a recursion is,
with the same number of rounds. There every round asks the whole definition anew; here a round asks
it of the rows that the last one brought.

The changes of an operator follow from those of its inputs: filters, projections, table functions
and unions are linear; an inner join of A and B changes by ``dA x B + (A + dA) x dB``; left, semi
and anti joins are linear in their left side while their right side does not change; a DISTINCT row
is there while its count is not 0. What reads nothing of the recursion is asked once. A definition
with any other operator over the recursion is asked as a whole, round by round.

Where it runs: everywhere; pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from noonmark.errors import EvaluationError
from noonmark.rows.exact import is_exact
from noonmark.sql.evaluate import evaluate as scalar_value
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar
from noonmark.sql.meaning.relation import (
    MEANINGS,
    ROUNDS_MAX,
    Inputs,
    Multiset,
    Row,
    ask,
    combined,
    join_key,
    mapped,
    values_of,
)

_FROM_LEFT = (r.JoinKind.LEFT, r.JoinKind.SEMI, r.JoinKind.ANTI)


def recursive(relation: r.Recursive, inputs: Inputs) -> Multiset:
    """See the module."""
    names = frozenset(relation.names)
    if not all(_is_known(value, names) for value in relation.values):
        return MEANINGS[r.Recursive](relation, inputs)
    current: dict[str, Counter[Row]] = {name: Counter() for name in relation.names}
    rounds = {name: _Changes(names, inputs) for name in relation.names}
    #: What changed of each name since a definition was last asked.
    unseen: dict[str, dict[str, Counter[Row]]] = {
        name: {other: Counter() for other in relation.names} for name in relation.names
    }
    for _ in range(relation.limit or ROUNDS_MAX):
        moved = False
        for name, value in zip(relation.names, relation.values, strict=True):
            given, unseen[name] = unseen[name], {other: Counter() for other in relation.names}
            delta = rounds[name].of(value, given)
            moved = moved or bool(delta)
            _add(current[name], delta)
            for other in unseen.values():
                _add(other[name], delta)
        if not moved:
            return ask(relation.body, inputs.bind(current))
    if relation.returns:
        return ask(relation.body, inputs.bind(current))
    raise EvaluationError("a recursive query has no fixpoint within its limit of rounds")


def _reads(node: r.Relation, names: frozenset[str]) -> bool:
    return any(get.name in names for get in r.gets(node))


def _is_known(node: r.Relation, names: frozenset[str]) -> bool:
    """Whether the changes of a relation follow from those of the names."""
    if not _reads(node, names):
        return True
    match node:
        case r.Get():
            return True
        case r.Filter() | r.Project() | r.FlatMap():
            return _is_known(node.input, names)
        case r.Distinct():
            exact = all(is_exact(each.type) for each in node.schema)
            return exact and _is_known(node.input, names)
        case r.Union():
            return all(_is_known(each, names) for each in node.inputs)
        case r.Join(kind=r.JoinKind.INNER):
            return _is_known(node.left, names) and _is_known(node.right, names)
        case r.Join() if node.kind in _FROM_LEFT:
            return _is_known(node.left, names) and not _reads(node.right, names)
    return False


def _add(counts: Counter[Row], delta: Multiset) -> None:
    for row, count in delta.items():
        total = counts[row] + count
        if total:
            counts[row] = total
        else:
            del counts[row]


class _Side:
    """One side of a join, by the key of the join."""

    def __init__(self, node: r.Join, scalars: Iterable[Scalar], inputs: Inputs) -> None:
        self._node = node
        self._scalars = list(scalars)
        self._inputs = inputs
        self._rows: dict[Any, Counter[Row]] = {}

    def key(self, row: Row) -> Any:
        """What must be equal; None if the row meets nothing."""
        return join_key(self._scalars, self._node.keys, row, self._inputs)

    def add(self, delta: Multiset) -> None:
        """Change the rows."""
        for row, count in delta.items():
            key = self.key(row)
            if key is not None:
                _add(self._rows.setdefault(key, Counter()), {row: count})

    def at(self, key: Any) -> list[tuple[Row, int]]:
        """The rows with a key."""
        return [] if key is None else list(self._rows.get(key, Counter()).items())


class _Changes:
    """What one definition changes by, each time that it is asked; it begins with nothing."""

    def __init__(self, names: frozenset[str], inputs: Inputs) -> None:
        self._names = names
        self._inputs = inputs
        #: Which relations read nothing of the recursion; and which of them were asked.
        self._is_fixed: dict[int, bool] = {}
        self._known: set[int] = set()
        self._sides: dict[int, tuple[_Side, _Side]] = {}
        self._counts: dict[int, Counter[Row]] = {}

    def of(self, node: r.Relation, given: dict[str, Counter[Row]]) -> Counter[Row]:
        """The changes of a relation since it was last asked, by those of the names."""
        self._given = given
        self._done: dict[int, Counter[Row]] = {}
        return self._of(node)

    def _of(self, node: r.Relation) -> Counter[Row]:
        if id(node) not in self._done:  # a plan shares subplans: once each
            self._done[id(node)] = self._act(node)
        return self._done[id(node)]

    def _act(self, node: r.Relation) -> Counter[Row]:
        if id(node) not in self._is_fixed:
            self._is_fixed[id(node)] = not _reads(node, self._names)
        if self._is_fixed[id(node)]:
            if id(node) in self._known:
                return Counter()
            self._known.add(id(node))
            return Counter(ask(node, self._inputs))
        match node:
            case r.Get():
                return self._given[node.name]
            case r.Filter() | r.Project() | r.FlatMap():
                return self._linear(node, self._of(node.input))
            case r.Union():
                made: Counter[Row] = Counter()
                for each in node.inputs:
                    _add(made, self._of(each))
                return made
            case r.Distinct():
                return self._distinct(node, self._of(node.input))
        assert isinstance(node, r.Join)
        return self._join(node)

    def _linear(self, node: r.Filter | r.Project | r.FlatMap, delta: Counter[Row]) -> Counter[Row]:
        made: Counter[Row] = Counter()
        for row, count in delta.items():
            for found in self._made(node, row):
                _add(made, {found: count})
        return made

    def _made(self, node: r.Filter | r.Project | r.FlatMap, row: Row) -> Iterable[Row]:
        """What one row becomes."""
        match node:
            case r.Filter():
                passes = scalar_value(node.predicate, row, self._inputs.outer) is True
                return [row] if passes else []
            case r.Project():
                return [values_of(node.scalars, row, self._inputs)]
        return mapped(node, row, self._inputs)

    def _distinct(self, node: r.Distinct, delta: Counter[Row]) -> Counter[Row]:
        counts = self._counts.setdefault(id(node), Counter())
        before = {row: row in counts for row in delta}
        _add(counts, delta)
        changed = [row for row, was in before.items() if was != (row in counts)]
        return Counter({row: 1 if row in counts else -1 for row in changed})

    def _join(self, node: r.Join) -> Counter[Row]:
        if id(node) not in self._sides:
            left = _Side(node, (key.left for key in node.keys), self._inputs)
            self._sides[id(node)] = left, _Side(node, (k.right for k in node.keys), self._inputs)
        left, right = self._sides[id(node)]
        from_left, from_right = self._of(node.left), self._of(node.right)
        made: Counter[Row] = Counter()
        if node.kind is not r.JoinKind.INNER:
            right.add(from_right)
        nulls = (None,) * len(node.right.schema)
        for row, count in from_left.items():
            partners = [each for each in right.at(left.key(row)) if self._holds(node, row, each[0])]
            for found, times in combined(node.kind, row, count, partners, nulls):
                _add(made, {found: times})
        if node.kind is not r.JoinKind.INNER:
            return made
        left.add(from_left)
        for row, count in from_right.items():
            for other, times in left.at(right.key(row)):
                if self._holds(node, other, row):
                    _add(made, {other + row: count * times})
        right.add(from_right)
        return made

    def _holds(self, node: r.Join, left: Row, right: Row) -> bool:
        return scalar_value(node.on, left + right, self._inputs.outer) is True
