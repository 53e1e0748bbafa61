"""The meaning of plans, in plain Python: the oracle of everything that computes them.

Law: ``evaluate(plan, inputs)`` is the multiset that the docstrings of `noonmark.sql.ir.relation`
define, for the collections at one time. It is written to be read, not to be fast.

A multiset is a dict from row to count; counts are positive, and rows are tuples of Python values
(`noonmark.rows.value`, arrays as tuples). Which of several equal rows stands for a group is fixed:
the first in the total order of rows.

Law (errors): if an expression fails on a row that the plan asks it of, the whole answer is that
`EvaluationError`, and there are no rows. When the row is gone, the answer has rows again. If
several rows fail, which of their errors is the answer is not defined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from noonmark.errors import EvaluationError, UnknownCollection, UsageError
from noonmark.rows import types as t
from noonmark.rows.order import null_last, row_key, sort_key, total_key
from noonmark.sql.evaluate import Outer
from noonmark.sql.evaluate import evaluate as scalar_value
from noonmark.sql.functions.number.fit import fit
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.scalar import Scalar
from noonmark.sql.meaning.window import window

Row = tuple[Any, ...]
Multiset = dict[Row, int]
Meanings = Mapping[type[r.Relation], Callable[[Any, "Inputs"], Multiset]]

ROUNDS_MAX = 10_000


@dataclass(frozen=True)
class Inputs:
    """What a plan is asked of: collections, names that are bound, rows of enclosing Applies."""

    collections: Mapping[str, Multiset]
    names: Mapping[str, Multiset] = field(default_factory=dict)
    outer: Outer = field(default_factory=dict)
    done: dict[int, Multiset] = field(default_factory=dict)  # a plan shares subplans: once each
    meanings: Meanings = field(default_factory=lambda: MEANINGS)

    def bind(self, names: Mapping[str, Multiset]) -> Inputs:
        """With names bound."""
        return replace(self, names={**self.names, **names}, done={})

    def inside(self, scope: int, row: Row) -> Inputs:
        """For one row of an enclosing Apply."""
        return replace(self, outer={**self.outer, scope: row}, done={})


def evaluate(
    relation: r.Relation,
    collections: Mapping[str, Mapping[Row, int]],
    meanings: Meanings | None = None,
) -> Multiset:
    """The rows of the plan over the collections at one time.

    `meanings` are those of the operators, in other words than here
    (`noonmark.sql.meaning.evaluation`).

    Raises:
        EvaluationError: the plan has no answer on these rows.
    """
    for name, rows in collections.items():
        if any(count < 0 for count in rows.values()):
            raise UsageError(f"collection {name} has a row a negative number of times")
    present = {
        name: {row: count for row, count in rows.items() if count}
        for name, rows in collections.items()
    }
    return ask(relation, Inputs(present, meanings=MEANINGS if meanings is None else meanings))


def outcome(
    relation: r.Relation, collections: Mapping[str, Mapping[Row, int]]
) -> Multiset | EvaluationError:
    """The answer, rows or error: what a view holds at that time."""
    try:
        return evaluate(relation, collections)
    except EvaluationError as error:
        return error


def in_order(rows: Mapping[Row, int], relation: r.Relation, order: Sequence[SortKey]) -> list[Row]:
    """The rows, each as often as it is there, sorted; ties by the whole row."""
    key = order_key(relation, order, {})
    return sorted((row for row, count in rows.items() for _ in range(count)), key=key)


def ask(relation: r.Relation, inputs: Inputs) -> Multiset:
    """The rows of a plan."""
    if id(relation) not in inputs.done:
        inputs.done[id(relation)] = inputs.meanings[type(relation)](relation, inputs)
    return inputs.done[id(relation)]


def summed(pairs: Iterable[tuple[Row, int]]) -> Multiset:
    """Rows with their counts, each once."""
    total: Counter[Row] = Counter()
    for row, count in pairs:
        total[row] += count
    return {row: count for row, count in total.items() if count}


def _types(relation: r.Relation) -> tuple[t.SqlType, ...]:
    return tuple(column.type for column in relation.schema)


def _scan(relation: r.Scan, inputs: Inputs) -> Multiset:
    found = inputs.collections.get(relation.collection)
    if found is None:
        raise UnknownCollection(f"collection {relation.collection} was not given")
    return dict(found)


def _constant(relation: r.Constant, _: Inputs) -> Multiset:
    return summed((row, 1) for row in relation.rows)


def _get(relation: r.Get, inputs: Inputs) -> Multiset:
    return dict(inputs.names[relation.name])


def _filter(relation: r.Filter, inputs: Inputs) -> Multiset:
    rows = ask(relation.input, inputs)
    test = relation.predicate
    if is_volatile(test):
        each = (row for row, n in rows.items() for _ in range(n))
        return summed((row, 1) for row in each if scalar_value(test, row, inputs.outer) is True)
    return {row: n for row, n in rows.items() if scalar_value(test, row, inputs.outer) is True}


def _project(relation: r.Project, inputs: Inputs) -> Multiset:
    rows = ask(relation.input, inputs)
    if any(map(is_volatile, relation.scalars)):
        each = (row for row, n in rows.items() for _ in range(n))
        return summed((values_of(relation.scalars, row, inputs), 1) for row in each)
    return summed((values_of(relation.scalars, row, inputs), n) for row, n in rows.items())


def values_of(scalars: Iterable[Scalar], row: Row, inputs: Inputs) -> Row:
    """What scalars are on a row."""
    return tuple(scalar_value(each, row, inputs.outer) for each in scalars)


# --- joins


def _join(relation: r.Join, inputs: Inputs) -> Multiset:
    left, right = ask(relation.left, inputs), ask(relation.right, inputs)
    matches = _matcher(relation, right, inputs)
    nulls = (None,) * len(relation.right.schema)
    result: list[tuple[Row, int]] = []
    seen: set[Row] = set()
    for row, count in left.items():
        partners = matches(row)
        seen.update(partner for partner, _ in partners)
        result += combined(relation.kind, row, count, partners, nulls)
    if relation.kind in (r.JoinKind.RIGHT, r.JoinKind.FULL):
        before = (None,) * len(relation.left.schema)
        result += [(before + row, count) for row, count in right.items() if row not in seen]
    return summed(result)


def combined(
    kind: r.JoinKind, row: Row, count: int, partners: list[tuple[Row, int]], nulls: Row
) -> list[tuple[Row, int]]:
    """What a join makes of a left row and its partners."""
    if kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return [(row, count)] if bool(partners) == (kind is r.JoinKind.SEMI) else []
    if not partners and kind in (r.JoinKind.LEFT, r.JoinKind.FULL):
        return [(row + nulls, count)]
    return [(row + partner, count * times) for partner, times in partners]


def _matcher(
    relation: r.Join, right: Multiset, inputs: Inputs
) -> Callable[[Row], list[tuple[Row, int]]]:
    """Finds the partners of a left row, by key where there are keys."""
    by_key: dict[Any, list[tuple[Row, int]]] = {}
    for row, count in right.items():
        key = join_key([each.right for each in relation.keys], relation.keys, row, inputs)
        if key is not None:
            by_key.setdefault(key, []).append((row, count))

    def find(row: Row) -> list[tuple[Row, int]]:
        key = join_key([each.left for each in relation.keys], relation.keys, row, inputs)
        if key is None:
            return []
        return [
            (partner, count)
            for partner, count in by_key.get(key, ())
            if scalar_value(relation.on, row + partner, inputs.outer) is True
        ]

    return find


def join_key(scalars: Sequence[Scalar], keys: Sequence[r.JoinKey], row: Row, inputs: Inputs) -> Any:
    """What must be equal; None if a NULL makes the row match nothing."""
    parts = []
    for scalar, key in zip(scalars, keys, strict=True):
        value = scalar_value(scalar, row, inputs.outer)
        if value is None and not key.null_equal:
            return None
        parts.append(null_last(sort_key(scalar.type))(value))
    return tuple(parts)


def _apply(relation: r.Apply, inputs: Inputs) -> Multiset:
    nulls = (None,) * len(relation.right.schema)
    result: list[tuple[Row, int]] = []
    for row, count in ask(relation.left, inputs).items():
        right = ask(relation.right, inputs.inside(relation.scope, row))
        partners = [
            (partner, times)
            for partner, times in right.items()
            if scalar_value(relation.on, row + partner, inputs.outer) is True
        ]
        result += combined(relation.kind, row, count, partners, nulls)
    return summed(result)


# --- groups


def groups(
    rows: Multiset, scalars: Sequence[Scalar], inputs: Inputs
) -> Iterator[tuple[Row, list[tuple[Row, int]]]]:
    """The keys and the rows of every group; of keys that are equal, the first in total order."""
    types = tuple(each.type for each in scalars)
    equal, total = row_key(types), row_key(types, total_key)
    found: dict[Any, list[tuple[Row, int]]] = {}
    keys: dict[Any, Row] = {}
    for row, count in rows.items():
        values = values_of(scalars, row, inputs)
        key = equal(values)
        found.setdefault(key, []).append((row, count))
        if values != keys.setdefault(key, values):
            keys[key] = min(values, keys[key], key=total)
    for key, members in found.items():
        yield keys[key], members


def _aggregate(relation: r.Aggregate, inputs: Inputs) -> Multiset:
    rows = ask(relation.input, inputs)
    found = list(groups(rows, relation.keys, inputs))
    if not relation.keys and not found:
        found = [((), [])]
    return summed(
        (keys + tuple(fold(each, members, inputs.outer) for each in relation.aggregates), 1)
        for keys, members in found
    )


def fold_frame(call: AggregateCall, rows: Sequence[tuple[Row, int]], outer: Outer) -> Any:
    """The value of an aggregate over the rows of a frame, which have the order of their window."""
    return fold(call, rows, outer, sorting=call.distinct)


def fold(
    call: AggregateCall,
    rows: Sequence[tuple[Row, int]],
    outer: Outer,
    *,
    sorting: bool | None = None,
) -> Any:
    """The value of an aggregate over rows and their counts.

    Without ORDER BY, what depends on an order has that of the values; without `sorting`, that of
    the rows.
    """
    types = tuple(each.type for each in call.arguments)
    taken: list[tuple[Any, Row, int]] = []
    # The order costs time and matters to few.
    if sorting is None:
        sorting = call.entry.ordered or call.distinct
    order = sort_keys(call.order, outer)
    own = row_key(types, total_key)
    for row, count in rows:
        if call.filter is not None and scalar_value(call.filter, row, outer) is not True:
            continue
        arguments = tuple(scalar_value(each, row, outer) for each in call.arguments)
        if call.entry.strict and any(value is None for value in arguments):
            continue
        place = (order(row), own(arguments)) if sorting else None
        taken.append((place, arguments, count))
    if sorting:
        taken.sort(key=lambda each: each[0])
    if call.distinct:
        taken = _once(taken, types)
    folded = call.entry.meaning(types, [(arguments, count) for _, arguments, count in taken])
    return fit(folded, call.type)


def _once(
    taken: list[tuple[Any, Row, int]], types: tuple[t.SqlType, ...]
) -> list[tuple[Any, Row, int]]:
    """Of arguments that are equal, the first, counted once."""
    equal = row_key(types)
    first: dict[Any, tuple[Any, Row, int]] = {}
    for place, arguments, _ in taken:
        first.setdefault(equal(arguments), (place, arguments, 1))
    return list(first.values())


def _distinct(relation: r.Distinct, inputs: Inputs) -> Multiset:
    return dict.fromkeys(_classes(ask(relation.input, inputs), relation), 1)


def _classes(rows: Multiset, relation: r.Relation) -> dict[Row, int]:
    """Rows that are equal as one row, with their counts summed: 1 day and 24 hours are equal."""
    equal, total = row_key(_types(relation)), row_key(_types(relation), total_key)
    first: dict[Any, Row] = {}
    counts: Counter[Row] = Counter()
    for row in sorted(rows, key=total):
        counts[first.setdefault(equal(row), row)] += rows[row]
    return dict(counts)


# --- order


class _Reversed:
    """A key that sorts the other way."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def sort_keys(order: Sequence[SortKey], outer: Outer) -> Callable[[Row], tuple[Any, ...]]:
    """Where a row stands by its sort keys alone."""
    keys = [sort_key(each.scalar.type) for each in order]

    def key(row: Row) -> tuple[Any, ...]:
        parts: list[Any] = []
        for each, of in zip(order, keys, strict=True):
            value = scalar_value(each.scalar, row, outer)
            if value is None:
                parts.append((-1 if each.nulls_first else 1, None))
            else:
                parts.append((0, _Reversed(of(value)) if each.descending else of(value)))
        return tuple(parts)

    return key


def order_key(
    relation: r.Relation, order: Sequence[SortKey], outer: Outer
) -> Callable[[Row], tuple[Any, ...]]:
    """The sort keys, then the whole row."""
    first, rest = sort_keys(order, outer), row_key(_types(relation), total_key)
    return lambda row: (first(row), rest(row))


def _top_k(relation: r.TopK, inputs: Inputs) -> Multiset:
    rows = ask(relation.input, inputs)
    key = order_key(relation.input, relation.order, inputs.outer)
    result: list[tuple[Row, int]] = []
    for _, members in groups(rows, relation.partition, inputs):
        skip, left = relation.offset, relation.limit
        for row, count in sorted(members, key=lambda each: key(each[0])):
            passed = min(skip, count)
            taken = count - passed if left is None else min(count - passed, left)
            skip -= passed
            left = None if left is None else left - taken
            result.append((row, taken))
    return summed(result)


# --- set operations and the rest


def _union(relation: r.Union, inputs: Inputs) -> Multiset:
    return summed(pair for each in relation.inputs for pair in ask(each, inputs).items())


def _both(relation: r.Intersect | r.Except, inputs: Inputs) -> Iterator[tuple[Row, int, int]]:
    """Every class of equal rows with its counts on the left and on the right."""
    left = ask(relation.left, inputs)
    right = ask(relation.right, inputs)
    equal = row_key(_types(relation))
    counts: Counter[Any] = Counter()
    for row, count in right.items():
        counts[equal(row)] += count
    for row, count in _classes(left, relation.left).items():
        yield row, count, counts[equal(row)]


def _intersect(relation: r.Intersect, inputs: Inputs) -> Multiset:
    return summed(
        (row, min(a, b) if relation.all else min(a, b, 1)) for row, a, b in _both(relation, inputs)
    )


def _except(relation: r.Except, inputs: Inputs) -> Multiset:
    return summed(
        (row, max(a - b, 0) if relation.all else int(b == 0))
        for row, a, b in _both(relation, inputs)
    )


def _flat_map(relation: r.FlatMap, inputs: Inputs) -> Multiset:
    rows = ask(relation.input, inputs)
    return summed((made, n) for row, n in rows.items() for made in mapped(relation, row, inputs))


def mapped(relation: r.FlatMap, row: Row, inputs: Inputs) -> Iterator[Row]:
    """The rows that a table function gives for one."""
    call = relation.call
    arguments = values_of(call.arguments, row, inputs)
    if any(value is None for value in arguments):
        return
    for at, made in enumerate(call.entry.meaning(*arguments), 1):
        fitted = tuple(map(fit, made, call.types))
        yield row + fitted + ((at,) if call.ordinality else ())


def windowed(
    relation: r.Window, inputs: Inputs, act: Callable[..., list[Row]] = window
) -> Multiset:
    """Every partition in order, as `act` gives its rows with the values of the calls."""
    rows = ask(relation.input, inputs)
    key = order_key(relation.input, relation.order, inputs.outer)
    peers = sort_keys(relation.order, inputs.outer)

    def place_of(scalar: Scalar) -> Callable[[Row], tuple[Any, ...]]:
        return sort_keys([replace(relation.order[0], scalar=scalar)], inputs.outer)

    result: list[Row] = []
    for _, members in groups(rows, relation.partition, inputs):
        listed = sorted((row for row, n in members for _ in range(n)), key=key)
        keys = [peers(row) for row in listed]
        result += act(relation.calls, listed, keys, inputs.outer, fold_frame, place_of=place_of)
    return summed((row, 1) for row in result)


def _let(relation: r.Let, inputs: Inputs) -> Multiset:
    value = ask(relation.value, inputs)
    return ask(relation.body, inputs.bind({relation.name: value}))


def _recursive(relation: r.Recursive, inputs: Inputs) -> Multiset:
    current: dict[str, Multiset] = {name: {} for name in relation.names}
    for _ in range(relation.limit or ROUNDS_MAX):
        before = dict(current)
        for name, value in zip(relation.names, relation.values, strict=True):
            current[name] = ask(value, inputs.bind(current))
        if before == current:
            return ask(relation.body, inputs.bind(current))
    if relation.returns:
        return ask(relation.body, inputs.bind(current))
    raise EvaluationError("a recursive query has no fixpoint within its limit of rounds")


MEANINGS: Meanings = {
    r.Scan: _scan,
    r.Constant: _constant,
    r.Get: _get,
    r.Filter: _filter,
    r.Project: _project,
    r.Join: _join,
    r.Apply: _apply,
    r.Aggregate: _aggregate,
    r.Distinct: _distinct,
    r.TopK: _top_k,
    r.Union: _union,
    r.Intersect: _intersect,
    r.Except: _except,
    r.FlatMap: _flat_map,
    r.Window: windowed,
    r.Let: _let,
    r.Recursive: _recursive,
}
