"""Scalars: expressions over the columns of one row.

A scalar is asked of a row and gives one value of its ``type``, NULL (only if it is ``nullable``),
or an `EvaluationError`. Columns are referred to by position, never by name; names are for people.

Booleans have three values: TRUE, FALSE and NULL (unknown). AND, OR, CASE, COALESCE and IN are asked
from the left and stop when the answer is known, so that a guard protects what stands after it.

Constructors refuse what has no meaning: wrong types, unknown functions, casts that do not exist.
They raise `DatatypeMismatch`; the planner, which knows positions, asks before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import DatatypeMismatch, EvaluationError
from noonmark.rows import types as t
from noonmark.rows.schema import Column
from noonmark.rows.value import identity, weight
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.cast import cast_exists, cast_fails
from noonmark.sql.functions.function import Function
from noonmark.sql.ir.node import VALUE, Node, rebuild, walk

BOOLEAN = t.Boolean()
_HARMLESS: dict[type[t.SqlType], Any] = {t.Text: "", t.Integer: 1, t.Bytea: b""}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """An expression; ``type`` and ``nullable`` are known when it is made."""

    type: t.SqlType
    nullable: bool

    @property
    def fails(self) -> bool:
        """Whether this node itself, its parts aside, may raise an `EvaluationError`."""
        return False


def _derive(scalar: Scalar, type_: t.SqlType, nullable: bool) -> None:
    object.__setattr__(scalar, "type", type_)
    object.__setattr__(scalar, "nullable", nullable)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DatatypeMismatch(message)


def same_kind(left: t.SqlType, right: t.SqlType) -> bool:
    """Whether values of the two types can be compared as they are: parameters do not matter."""
    match left, right:
        case t.Array(a), t.Array(b):
            return same_kind(a, b)
        case t.Record(a), t.Record(b):
            return len(a) == len(b) and all(
                same_kind(x.type, y.type) for x, y in zip(a, b, strict=True)
            )
    return type(left) is type(right)


@dataclass(frozen=True, slots=True)
class ColumnRef(Scalar):
    """The value of the column at `index` of the row."""

    type: t.SqlType
    nullable: bool
    index: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class OuterRef(Scalar):
    """The value of a column of the left row of the enclosing `Apply` with that `scope`.

    Only inside the right side of an `Apply`; the rule `decorrelate` removes them all.
    """

    type: t.SqlType
    nullable: bool
    scope: int
    index: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Scalar):
    """One value; None is NULL. An array is a tuple.

    Literals are equal if nobody can tell them apart: 0.0 and -0.0 are not, 1.0 and 1.00 are not.
    """

    type: t.SqlType
    nullable: bool = field(init=False)
    value: Any = field(metadata=VALUE)

    def __post_init__(self) -> None:
        _derive(self, self.type, self.value is None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.type == other.type and identity(self.value) == identity(other.value)

    def __hash__(self) -> int:
        return hash((self.type, identity(self.value)))


def is_bounded(function: Function, arguments: Sequence[Scalar]) -> bool:
    """Whether the time of a call is bounded: not with back references in a regular expression."""
    if function.steps is None:
        return True
    pattern = arguments[1]
    if not isinstance(pattern, Literal) or pattern.value is None:
        return True
    try:
        return math.isfinite(function.steps(pattern.value, 0))
    except EvaluationError:
        return True


def pattern_steps(steps: Callable[[str, int], float], pattern: Literal, length: int) -> float:
    """See `Function.steps`; nothing for a pattern that is NULL or no pattern."""
    try:
        return 0 if pattern.value is None else steps(pattern.value, length)
    except EvaluationError:
        return 0


def length(scalar: Scalar, known: dict[int, int] | None = None) -> int:
    """About how long a text is, without what of it depends on the row; `known` by identity."""
    known = {} if known is None else known
    found = known.get(id(scalar))
    return known.setdefault(id(scalar), _length(scalar, known)) if found is None else found


def _length(scalar: Scalar, known: dict[int, int]) -> int:
    if isinstance(scalar, Literal):
        return weight(scalar.value)
    if isinstance(scalar, Cast):
        return length(scalar.operand, known)
    if not isinstance(scalar, Call):
        return 0
    if 0 < scalar.size < math.inf:
        return int(scalar.size)
    return sum(length(each, known) for each in scalar.arguments)


@dataclass(frozen=True, slots=True)
class Call(Scalar):
    """A function of the table, by id, with arguments of exactly its parameter types."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    function: str
    arguments: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        entry = self.entry
        types = tuple(argument.type for argument in self.arguments)
        _require(entry.takes(types), f"{entry.id} does not take ({', '.join(map(str, types))})")
        missing = entry.strict and any(argument.nullable for argument in self.arguments)
        _derive(self, entry.result_type(types), entry.gives_null or missing)

    @property
    def entry(self) -> Function:
        """The function's row in the table."""
        found = FUNCTIONS.by_id.get(self.function)
        if found is None:
            raise DatatypeMismatch(f"there is no function {self.function}")
        return found

    @property
    def is_bounded(self) -> bool:
        """See `is_bounded`."""
        return is_bounded(self.entry, self.arguments)

    @property
    def steps(self) -> float:
        """About how many microseconds it takes to look for its pattern, if it has one.

        Infinite where that depends on the row, or is not bounded by the text.
        """
        steps = self.entry.steps
        if steps is None:
            return 0
        text, pattern = self.arguments[:2]
        if not isinstance(pattern, Literal):
            return math.inf
        return pattern_steps(steps, pattern, length(text))

    @property
    def size(self) -> float:
        """About how long the result is, where it may be much longer than the arguments, else 0.

        Without bound where that depends on the row.
        """
        size = self.entry.size
        if size is None:
            return 0
        values = [each.value for each in self.arguments if isinstance(each, Literal)]
        if len(values) < len(self.arguments):
            return math.inf
        return 0 if None in values else size(*values)

    @property
    def fails(self) -> bool:
        """Whether the function may raise, with the literals that it is called with."""
        entry = self.entry
        if not entry.fails(tuple(argument.type for argument in self.arguments)):
            return False
        if not entry.decided_by:
            return True
        deciding = [self.arguments[at] for at in entry.decided_by]
        return not all(isinstance(each, Literal) for each in deciding) or self._probe_fails()

    def _probe_fails(self) -> bool:
        """Whether the literals that decide make it raise; others may take for ever."""
        probe: list[Any] = [_HARMLESS[type(argument.type)] for argument in self.arguments]
        for at in self.entry.decided_by:
            probe[at] = getattr(self.arguments[at], "value", None)
        try:
            None in probe or self.entry.meaning(*probe)
        except EvaluationError:
            return True
        return False


@dataclass(frozen=True, slots=True)
class Cast(Scalar):
    """The value as another type, by PostgreSQL's casts; NULL stays NULL."""

    type: t.SqlType
    nullable: bool = field(init=False)
    operand: Scalar

    def __post_init__(self) -> None:
        source = self.operand.type
        _require(cast_exists(source, self.type), f"cannot cast type {source} to {self.type}")
        null_json = isinstance(source, t.Jsonb)  # JSON's null is SQL's NULL outside jsonb
        _derive(self, self.type, self.operand.nullable or null_json)

    @property
    def fails(self) -> bool:
        """Whether some value of the source type has no form in the target type."""
        return cast_fails(self.operand.type, self.type)


@dataclass(frozen=True, slots=True)
class Compare(Scalar):
    """``left op right`` for values of one kind; NULL if one is. Text compares by code point."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    op: str
    left: Scalar
    right: Scalar

    def __post_init__(self) -> None:
        _require(self.op in COMPARISONS, f"{self.op} is not a comparison")
        left, right = self.left.type, self.right.type
        _require(same_kind(left, right), f"cannot compare {left} with {right}")
        _derive(self, BOOLEAN, self.left.nullable or self.right.nullable)


@dataclass(frozen=True, slots=True)
class IsDistinct(Scalar):
    """``left IS DISTINCT FROM right``: inequality for which NULL is a value like any other."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    left: Scalar
    right: Scalar

    def __post_init__(self) -> None:
        left, right = self.left.type, self.right.type
        _require(same_kind(left, right), f"cannot compare {left} with {right}")
        _derive(self, BOOLEAN, False)


@dataclass(frozen=True, slots=True)
class And(Scalar):
    """FALSE if a part is FALSE, else NULL if one is NULL, else TRUE; of no parts: TRUE."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    parts: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _require(all(p.type == BOOLEAN for p in self.parts), "argument of AND must be boolean")
        _derive(self, BOOLEAN, any(part.nullable for part in self.parts))


@dataclass(frozen=True, slots=True)
class Or(Scalar):
    """TRUE if a part is TRUE, else NULL if one is NULL, else FALSE; of no parts: FALSE."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    parts: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _require(all(p.type == BOOLEAN for p in self.parts), "argument of OR must be boolean")
        _derive(self, BOOLEAN, any(part.nullable for part in self.parts))


@dataclass(frozen=True, slots=True)
class Not(Scalar):
    """The opposite; NULL stays NULL."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    operand: Scalar

    def __post_init__(self) -> None:
        _require(self.operand.type == BOOLEAN, "argument of NOT must be boolean")
        _derive(self, BOOLEAN, self.operand.nullable)


@dataclass(frozen=True, slots=True)
class Is(Scalar):
    """``operand IS value`` for TRUE, FALSE or NULL (None); never NULL itself.

    ``IS NULL`` of a record asks whether it is NULL as a whole, unlike PostgreSQL's, which also
    takes a record of NULLs.
    """

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    operand: Scalar
    value: bool | None

    def __post_init__(self) -> None:
        boolean = self.value is None or self.operand.type == BOOLEAN
        _require(boolean, f"argument of IS {str(self.value).upper()} must be boolean")
        _derive(self, BOOLEAN, False)


@dataclass(frozen=True, slots=True)
class InList(Scalar):
    """``operand = item`` OR-ed over the items: TRUE if one is equal, else NULL if one is NULL."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    operand: Scalar
    items: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _require(bool(self.items), "IN needs a value")
        for item in self.items:
            same = same_kind(item.type, self.operand.type)
            _require(same, f"cannot compare {self.operand.type} with {item.type}")
        _derive(self, BOOLEAN, any(each.nullable for each in (self.operand, *self.items)))


@dataclass(frozen=True, slots=True)
class When(Node):
    """One branch of a `Case`."""

    condition: Scalar
    value: Scalar


@dataclass(frozen=True, slots=True)
class Case(Scalar):
    """The value of the first branch whose condition is TRUE, else `default`."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    branches: tuple[When, ...]
    default: Scalar

    def __post_init__(self) -> None:
        for branch in self.branches:
            _require(branch.condition.type == BOOLEAN, "argument of CASE/WHEN must be boolean")
            same = branch.value.type == self.default.type
            _require(same, f"CASE types {branch.value.type} and {self.default.type} differ")
        nullable = any(each.nullable for each in (*(b.value for b in self.branches), self.default))
        _derive(self, self.default.type, nullable)


@dataclass(frozen=True, slots=True)
class Coalesce(Scalar):
    """The first argument that is not NULL; what stands after it is not asked."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    arguments: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _require(bool(self.arguments), "COALESCE needs an argument")
        first = self.arguments[0].type
        same = all(each.type == first for each in self.arguments)
        _require(same, "the arguments of COALESCE differ in type")
        _derive(self, first, all(each.nullable for each in self.arguments))


@dataclass(frozen=True, slots=True)
class MakeArray(Scalar):
    """An array of the elements, which are of one type."""

    type: t.SqlType
    nullable: bool = field(init=False)
    elements: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        _require(isinstance(self.type, t.Array), "ARRAY[] is not of an array type")
        element = self.type.element if isinstance(self.type, t.Array) else self.type
        _require(all(e.type == element for e in self.elements), "ARRAY elements differ in type")
        _derive(self, self.type, False)


@dataclass(frozen=True, slots=True)
class MakeRecord(Scalar):
    """A record of the values, its fields named by the type."""

    type: t.SqlType
    nullable: bool = field(init=False)
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        fields = self.type.fields if isinstance(self.type, t.Record) else ()
        same = [f.type for f in fields] == [v.type for v in self.values]
        _require(same, "the values of ROW() are not those of its type")
        _derive(self, self.type, False)


@dataclass(frozen=True, slots=True)
class FieldRef(Scalar):
    """The field at `index` of a record; NULL if the record is."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    record: Scalar
    index: int

    def __post_init__(self) -> None:
        record = self.record.type
        known = isinstance(record, t.Record) and 0 <= self.index < len(record.fields)
        _require(known, f"{record} has no field {self.index}")
        assert isinstance(record, t.Record)
        _derive(self, record.fields[self.index].type, True)


TRUE, FALSE = Literal(BOOLEAN, True), Literal(BOOLEAN, False)


def column(index: int, column: Column) -> ColumnRef:
    """A reference to a column of a schema."""
    return ColumnRef(column.type, column.nullable, index, column.name)


def conjuncts(scalar: Scalar) -> Iterator[Scalar]:
    """The parts of a conjunction, flat; TRUE has none."""
    if isinstance(scalar, And):
        for part in scalar.parts:
            yield from conjuncts(part)
    elif scalar != TRUE:
        yield scalar


def conjunction(parts: Sequence[Scalar]) -> Scalar:
    """The AND of the parts: TRUE of none, the part itself of one."""
    return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else TRUE


def columns_of(scalar: Node) -> set[int]:
    """The positions of the columns that a scalar uses."""
    return {node.index for node in walk(scalar) if isinstance(node, ColumnRef)}


def may_fail(scalar: Node) -> bool:
    """Whether asking the scalar of a row may raise an `EvaluationError`."""
    return any(isinstance(node, Scalar) and node.fails for node in walk(scalar))


def map_columns(scalar: Scalar, change: Callable[[ColumnRef], Scalar]) -> Scalar:
    """The scalar with every column reference replaced."""

    def act(node: Node) -> Node:
        return change(node) if isinstance(node, ColumnRef) else rebuild(node, act)

    result = act(scalar)
    assert isinstance(result, Scalar)
    return result


def shift(scalar: Scalar, by: int) -> Scalar:
    """The scalar over a row that has `by` more columns in front."""
    return map_columns(
        scalar, lambda ref: ColumnRef(ref.type, ref.nullable, ref.index + by, ref.name)
    )
