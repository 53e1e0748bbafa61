"""Relations: a relation is asked of the inputs at one time and gives a multiset of rows.

Notation. A collection at a time is a function from rows to how often they are there: ``[R](r)`` is
the count of row r in R, an integer, 0 for almost all r. Every law below is an equation of such
functions, so it also holds for differences of collections (Z-sets, whose counts may be negative)
wherever it is linear: Filter, Project, FlatMap and Union are linear in their input, and the inner
join is linear in each of its two.

Every node knows the `Schema` of its rows when it is made; scalars refer to columns by position.
Column names inside one schema are distinct; where two inputs meet, `distinct_names` sees to it.
Constructors raise `DatatypeMismatch` for a plan that has no meaning.

A plan is a value: equal subplans are the same collection, and may be computed once.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import DatatypeMismatch
from noonmark.rows.domain import Domain
from noonmark.rows.schema import Column, Schema
from noonmark.rows.value import identity
from noonmark.sql.ir.call import AggregateCall, SortKey, TableCall, WindowCall
from noonmark.sql.ir.node import VALUE, Node, children, walk, walk_once
from noonmark.sql.ir.scalar import BOOLEAN, TRUE, ColumnRef, Scalar, same_kind


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A multiset of rows as a function of the inputs."""

    schema: Schema = field(init=False, compare=False, repr=False)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DatatypeMismatch(message)


def _output(relation: Relation, columns: Iterable[Column]) -> None:
    object.__setattr__(relation, "schema", Schema(tuple(columns)))


def check_columns(parts: Iterable[Node | None], *schemas: Schema) -> None:
    """Every column reference in the parts is a column of the schemas side by side."""
    columns = [column for schema in schemas for column in schema]
    for part in parts:
        for ref in (n for n in walk(part) if isinstance(n, ColumnRef)) if part else ():
            _require(0 <= ref.index < len(columns), f"there is no column {ref.index}")
            found = columns[ref.index]
            same = found.type == ref.type and (ref.nullable or not found.nullable)
            _require(same, f'column {ref.index} is "{found}", not {ref.type}')


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with a number after those that were there before.

    >>> distinct_names(["a", "b", "a", "a_1"])
    ['a', 'b', 'a_1', 'a_1_1']
    """
    taken: set[str] = set()
    counts: dict[str, int] = {}  # up to where the numbers after a name are taken
    result = []
    for name in names:
        free, count = name, counts.get(name, 0)
        while free in taken:
            count += 1
            free = f"{name}_{count}"
        counts[name] = count
        taken.add(free)
        result.append(free)
    return result


def beside(left: Iterable[Column], right: Iterable[Column]) -> list[Column]:
    """The columns of two inputs side by side, under distinct names."""
    columns = [*left, *right]
    names = distinct_names([column.name for column in columns])
    return [
        Column(name, column.type, column.nullable, column.domain)
        for name, column in zip(names, columns, strict=True)
    ]


def _nullable(columns: Iterable[Column]) -> Iterator[Column]:
    return (Column(column.name, column.type) for column in columns)


@dataclass(frozen=True, slots=True)
class Scan(Relation):
    """[Scan(c)] = the collection named c at the time that is asked."""

    collection: str
    columns: Schema

    def __post_init__(self) -> None:
        _output(self, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Relation):
    """The rows, each as often as it is listed, at every time; equal as literals are."""

    columns: Schema
    rows: tuple[tuple[Any, ...], ...] = field(metadata=VALUE)

    def __post_init__(self) -> None:
        for row in self.rows:
            _require(len(row) == len(self.columns), "a row of VALUES has another length")
        _output(self, self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return self.columns == other.columns and identity(self.rows) == identity(other.rows)

    def __hash__(self) -> int:
        return hash((self.columns, identity(self.rows)))


@dataclass(frozen=True, slots=True)
class Get(Relation):
    """What the enclosing `Let` or `Recursive` binds to the name."""

    name: str
    columns: Schema

    def __post_init__(self) -> None:
        _output(self, self.columns)


@dataclass(frozen=True, slots=True)
class Filter(Relation):
    """[Filter(R, p)](r) = [R](r) if p(r) is TRUE, else 0. FALSE and NULL are the same here."""

    input: Relation
    predicate: Scalar

    def __post_init__(self) -> None:
        _require(self.predicate.type == BOOLEAN, "argument of WHERE must be boolean")
        check_columns([self.predicate], self.input.schema)
        _output(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class Project(Relation):
    """[Project(R, f)](s) = the sum of [R](r) over all r with f(r) = s."""

    input: Relation
    scalars: tuple[Scalar, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(len(self.scalars) == len(self.names), "a projection needs a name per scalar")
        check_columns(self.scalars, self.input.schema)
        _output(
            self,
            [
                Column(name, each.type, each.nullable, _domain(each, self.input.schema))
                for name, each in zip(self.names, self.scalars, strict=True)
            ],
        )


def _domain(scalar: Scalar, below: Schema) -> Domain | None:
    """What a column is declared as that is another one as it is."""
    return below.columns[scalar.index].domain if isinstance(scalar, ColumnRef) else None


class JoinKind(enum.Enum):
    """How rows without a partner are treated."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True)
class JoinKey(Node):
    """``left(l) = right(r)``, a scalar over each side alone.

    With `null_equal` two NULLs are equal (IS NOT DISTINCT FROM); else NULL equals nothing.
    """

    left: Scalar
    right: Scalar
    null_equal: bool = False

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        _require(same_kind(left, right), f"cannot compare {left} with {right}")


def _joined(kind: JoinKind, left: Schema, right: Schema) -> Iterable[Column]:
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    sides = (
        _nullable(left) if kind in (JoinKind.RIGHT, JoinKind.FULL) else left,
        _nullable(right) if kind in (JoinKind.LEFT, JoinKind.FULL) else right,
    )
    return beside(*sides)


@dataclass(frozen=True, slots=True)
class Join(Relation):
    """Pairs of a left and a right row that match: all `keys` are equal and `on` is TRUE.

    inner: [J](l + r) = [L](l) * [R](r) if they match, else 0. Without keys and with `on` TRUE it
           is the cross join.
    left:  inner, and every l that matches no r with [R](r) > 0, as often as it is there, with NULL
           for the columns of R. right: the same from the other side. full: both.
    semi:  [J](l) = [L](l) if l matches some r with [R](r) > 0, else 0. anti: [L](l) - semi.

    `on` sees the columns of L, then those of R.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    keys: tuple[JoinKey, ...] = ()
    on: Scalar = TRUE

    def __post_init__(self) -> None:
        left, right = self.left.schema, self.right.schema
        _require(self.on.type == BOOLEAN, "argument of JOIN/ON must be boolean")
        check_columns([key.left for key in self.keys], left)
        check_columns([key.right for key in self.keys], right)
        check_columns([self.on], left, right)
        _output(self, _joined(self.kind, left, right))


@dataclass(frozen=True, slots=True)
class Apply(Relation):
    """A lateral join: the right side is asked anew for every row l of the left.

    [Apply](l + r) = [L](l) * [R with OuterRef(scope, i) = l[i]](r) if `on` is TRUE; the kinds
    inner, left, semi and anti are those of `Join`. The rule `decorrelate` turns every Apply into
    joins, so the stages after the rules do not know it.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    scope: int
    on: Scalar = TRUE

    def __post_init__(self) -> None:
        outer = self.kind in (JoinKind.RIGHT, JoinKind.FULL)
        _require(not outer, f"a lateral join cannot be a {self.kind.value} join")
        _require(self.on.type == BOOLEAN, "argument of JOIN/ON must be boolean")
        check_columns([self.on], self.left.schema, self.right.schema)
        _output(self, _joined(self.kind, self.left.schema, self.right.schema))


@dataclass(frozen=True, slots=True)
class Aggregate(Relation):
    """One row per group: the group's keys, then the aggregates over its rows.

    A group is the rows whose keys are equal, NULL being equal to NULL; it exists if a row of it is
    there. Without keys there is exactly one group, also over no rows. An aggregate sees each row r
    [R](r) times.

    `growing` says that rows seldom leave R: what is maintained then follows from the node's own
    rows (`noonmark.compute.plan.growing`). It changes nothing of what the relation is.
    """

    input: Relation
    keys: tuple[Scalar, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    growing: bool = False

    def __post_init__(self) -> None:
        parts: tuple[Scalar | AggregateCall, ...] = (*self.keys, *self.aggregates)
        _require(len(parts) == len(self.names), "an aggregation needs a name per column")
        check_columns(parts, self.input.schema)
        _output(
            self, [Column(n, p.type, p.nullable) for n, p in zip(self.names, parts, strict=True)]
        )


@dataclass(frozen=True, slots=True)
class Distinct(Relation):
    """[Distinct(R)](r) = 1 if [R](r) > 0, else 0."""

    input: Relation

    def __post_init__(self) -> None:
        _output(self, self.input.schema)


@dataclass(frozen=True, slots=True)
class TopK(Relation):
    """Of each partition, in its order, at most `limit` rows after the first `offset`.

    A row that is there n times takes n places. Ties follow `ir.call`: the whole row decides.
    DISTINCT ON is a partition with limit 1. `growing` is as for `Aggregate`.
    """

    input: Relation
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    growing: bool = False

    def __post_init__(self) -> None:
        _require(self.limit is None or self.limit >= 0, "LIMIT must not be negative")
        _require(self.offset >= 0, "OFFSET must not be negative")
        check_columns((*self.partition, *self.order), self.input.schema)
        _output(self, self.input.schema)


def _merged(inputs: tuple[Relation, ...]) -> Iterator[Column]:
    """The columns of a set operation: named by the first input, nullable if one of them is."""
    _require(len(inputs) > 0, "a set operation needs an input")
    for parts in zip(*(each.schema.columns for each in inputs), strict=True):
        same = all(part.type == parts[0].type for part in parts)
        _require(same, f"the types {' and '.join(str(part.type) for part in parts)} differ")
        yield Column(parts[0].name, parts[0].type, any(part.nullable for part in parts))


def _check_widths(inputs: tuple[Relation, ...]) -> None:
    widths = {len(each.schema) for each in inputs}
    _require(len(widths) == 1, "the inputs of a set operation differ in columns")


@dataclass(frozen=True, slots=True)
class Union(Relation):
    """[Union](r) = the sum of [R](r) over the inputs: UNION ALL. UNION is its Distinct."""

    inputs: tuple[Relation, ...]

    def __post_init__(self) -> None:
        _check_widths(self.inputs)
        _output(self, _merged(self.inputs))


@dataclass(frozen=True, slots=True)
class Intersect(Relation):
    """[Intersect ALL](r) = min([L](r), [R](r)); without `all` at most 1 of each."""

    left: Relation
    right: Relation
    all: bool

    def __post_init__(self) -> None:
        _check_widths((self.left, self.right))
        _output(self, _merged((self.left, self.right)))


@dataclass(frozen=True, slots=True)
class Except(Relation):
    """[Except ALL](r) = max([L](r) - [R](r), 0).

    Without `all`: 1 if [L](r) > 0 and [R](r) = 0, else 0.
    """

    left: Relation
    right: Relation
    all: bool

    def __post_init__(self) -> None:
        _check_widths((self.left, self.right))
        _output(self, _merged((self.left, self.right)))


@dataclass(frozen=True, slots=True)
class Window(Relation):
    """Every row of the input with one more column per call.

    The rows whose `partition` is equal (NULL equals NULL) stand in `order`, ties by the whole row;
    a row that is there n times stands n times. Rows with equal `order` are peers.
    """

    input: Relation
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(len(self.calls) == len(self.names), "a window needs a name per call")
        check_columns((*self.partition, *self.order, *self.calls), self.input.schema)
        added = [Column(n, c.type, c.nullable) for n, c in zip(self.names, self.calls, strict=True)]
        _output(self, beside(self.input.schema, added))


@dataclass(frozen=True, slots=True)
class FlatMap(Relation):
    """[FlatMap(R, f)](r + s) = [R](r) * how often f(r) gives s."""

    input: Relation
    call: TableCall
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(len(self.names) == len(self.call.types), "a table function needs its names")
        check_columns([self.call], self.input.schema)
        added = [Column(n, type_) for n, type_ in zip(self.names, self.call.types, strict=True)]
        _output(self, beside(self.input.schema, added))


@dataclass(frozen=True, slots=True)
class Let(Relation):
    """`body`, in which ``Get(name)`` stands for `value`: one subplan with several users."""

    name: str
    value: Relation
    body: Relation

    def __post_init__(self) -> None:
        for get in gets(self.body):
            same = get.name != self.name or _serves(self.value.schema, get.columns)
            _require(same, f'"{self.name}" is used under another schema than it has')
        _output(self, self.body.schema)


def _serves(given: Schema, wanted: Schema) -> bool:
    """Whether rows of one schema can be read under the other: NULL only where it is expected."""
    return len(given) == len(wanted) and all(
        a.type == b.type and (b.nullable or not a.nullable)
        for a, b in zip(given, wanted, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Recursive(Relation):
    """`body`, in which each name stands for its part of the fixpoint.

    All collections start empty. In each round the values are asked one after the other, each with
    the collections as they are by then, and each becomes what its name stands for; the fixpoint is
    the first round that changes nothing. If there is none when `limit` rounds (None: any number)
    have passed, the answer is an error, or (`returns`) that of the collections as they are then.
    """

    names: tuple[str, ...]
    values: tuple[Relation, ...]
    body: Relation
    limit: int | None = None
    returns: bool = False

    def __post_init__(self) -> None:
        _require(len(self.names) == len(self.values), "a recursion needs a value per name")
        schemas = dict(zip(self.names, (v.schema for v in self.values), strict=True))
        for part in (*self.values, self.body):
            for get in gets(part):
                types = [c.type for c in get.columns]
                known = schemas.get(get.name)
                same = known is None or types == [c.type for c in known]
                _require(same, f'"{get.name}" is used under another schema than it has')
        _output(self, self.body.schema)


def relations_below(relation: Relation) -> Iterator[Relation]:
    """The direct inputs of a relation."""
    return (child for child in children(relation) if isinstance(child, Relation))


def is_read(relation: Relation) -> bool:
    """Whether a relation is a collection, with filters and projections on it."""
    if isinstance(relation, Filter | Project):
        return is_read(relation.input)
    return isinstance(relation, Scan)


def gets(relation: Relation) -> Iterator[Get]:
    """The uses of bound names inside a plan."""
    return (node for node in walk_once(relation) if isinstance(node, Get))


def scans(relation: Relation) -> dict[str, Schema]:
    """The collections that a plan reads."""
    return {node.collection: node.columns for node in walk_once(relation) if isinstance(node, Scan)}


ONE_ROW = Constant(Schema(()), ((),))
"""One row without columns: what a SELECT without FROM selects from."""
