"""The parts of relations that are neither scalar nor relation: sort keys, aggregates, windows.

Law (definite): what SQL leaves open is fixed here, so that an answer is a function of its input.
Rows that are equal by the sort keys follow each other in the order of the whole row: column by
column, ascending, NULL last. An aggregate whose result depends on an order (``array_agg``,
``string_agg``) takes its arguments by its ORDER BY and then in the order of the arguments; those of
one SELECT that have no ORDER BY are given one together (`plan.group`): their items correspond.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from noonmark.errors import DatatypeMismatch, UndefinedFunction, Unsupported
from noonmark.rows import types as t
from noonmark.rows.order import has_equality, is_ordered
from noonmark.sql.functions import AGGREGATES, TABLE_FUNCTIONS, WINDOWS
from noonmark.sql.functions.aggregate import Aggregator
from noonmark.sql.functions.function import Function
from noonmark.sql.ir.node import Node
from noonmark.sql.ir.scalar import BOOLEAN, Scalar, is_bounded


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DatatypeMismatch(message)


@dataclass(frozen=True, slots=True)
class SortKey(Node):
    """One key of an order."""

    scalar: Scalar
    descending: bool = False
    nulls_first: bool = False

    def __post_init__(self) -> None:
        if not has_equality(self.scalar.type):
            raise UndefinedFunction(
                f"could not identify an ordering operator for type {self.scalar.type}"
            )
        if not is_ordered(self.scalar.type):
            raise Unsupported(f"type {self.scalar.type} has no order here")


def _types(arguments: tuple[Scalar, ...]) -> tuple[t.SqlType, ...]:
    return tuple(argument.type for argument in arguments)


@dataclass(frozen=True, slots=True)
class AggregateCall(Node):
    """An aggregate of the table over the rows of a group: those that `filter` lets pass.

    With `distinct`, each list of arguments counts once, however many rows have it.
    """

    function: str
    arguments: tuple[Scalar, ...] = ()
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()
    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        types = _types(self.arguments)
        takes = self.function in AGGREGATES.by_id and self.entry.takes(types)
        _require(takes, f"{self.function} does not take ({', '.join(map(str, types))})")
        passes = self.filter is None or self.filter.type == BOOLEAN
        _require(passes, "argument of FILTER must be boolean")
        object.__setattr__(self, "type", self.entry.result_type(types))
        object.__setattr__(self, "nullable", self.entry.gives_null)

    @property
    def entry(self) -> Aggregator:
        """The aggregate's row in the table."""
        return AGGREGATES.by_id[self.function]


class Unit(enum.Enum):
    """What the bounds of a frame count."""

    ROWS = "ROWS"
    GROUPS = "GROUPS"
    RANGE = "RANGE"


class Exclusion(enum.Enum):
    """What a frame leaves out around the current row."""

    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    TIES = "TIES"


@dataclass(frozen=True, slots=True)
class Frame(Node):
    """The rows around the current one that a window function sees.

    A bound is a distance from the current row (negative: before it; for GROUPS, in groups of
    peers); None is the end of the partition on that side. One that ends before it starts is empty.
    The bounds of a RANGE frame are 0, which
    stands for the whole group of peers, None, or a value: `first` or `last` is asked of the current
    row, and the frame begins with the first row whose `by` is not before it, or ends with the last
    that is not behind it. NULL is only in the frame of NULL.
    """

    unit: Unit = Unit.RANGE
    start: int | None = None
    end: int | None = 0
    exclude: Exclusion = Exclusion.NO_OTHERS
    by: Scalar | None = None
    first: Scalar | None = None
    last: Scalar | None = None

    def __post_init__(self) -> None:
        ranged = self.unit is Unit.RANGE and not {self.start, self.end} <= {0, None}
        _require(not ranged, "the distance of a RANGE frame is a value")
        edges = [each for each in (self.first, self.last) if each is not None]
        fits = all(self.by is not None and type(each.type) is type(self.by.type) for each in edges)
        _require(
            fits and bool(edges) == (self.by is not None), "a frame is by the type of its edges"
        )


@dataclass(frozen=True, slots=True)
class WindowCall(Node):
    """A window function, or an aggregate over the frame of each row."""

    function: str
    arguments: tuple[Scalar, ...] = ()
    frame: Frame = Frame()
    filter: Scalar | None = None
    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)

    def __post_init__(self) -> None:
        types = _types(self.arguments)
        known = self.function in WINDOWS.by_id or self.function in AGGREGATES.by_id
        takes = known and self.entry.takes(types)
        _require(takes, f"{self.function} does not take ({', '.join(map(str, types))})")
        _require(
            self.filter is None or (not self.is_window and self.filter.type == BOOLEAN),
            "FILTER is for aggregates and must be boolean",
        )
        object.__setattr__(self, "type", self.entry.result_type(types))
        object.__setattr__(self, "nullable", self.entry.gives_null)

    @property
    def is_window(self) -> bool:
        """Whether it is a window function proper (row_number, lag, ...) and no aggregate."""
        return self.function in WINDOWS.by_id

    @property
    def entry(self) -> Function | Aggregator:
        """The function's row in its table."""
        return WINDOWS.by_id.get(self.function) or AGGREGATES.by_id[self.function]


@dataclass(frozen=True, slots=True)
class TableCall(Node):
    """A function that gives any number of rows for one row: generate_series, unnest, ..."""

    function: str
    arguments: tuple[Scalar, ...]
    ordinality: bool = False
    types: tuple[t.SqlType, ...] = field(init=False)

    def __post_init__(self) -> None:
        types = _types(self.arguments)
        takes = self.function in TABLE_FUNCTIONS.by_id and self.entry.takes(types)
        _require(takes, f"{self.function} does not take ({', '.join(map(str, types))})")
        columns = tuple(column.type for column in self.entry.columns(types, ""))
        object.__setattr__(self, "types", columns + (t.BigInt(),) * self.ordinality)

    @property
    def is_bounded(self) -> bool:
        """See `scalar.is_bounded`."""
        return is_bounded(self.entry, self.arguments)

    @property
    def entry(self) -> Function:
        """The function's row in the table."""
        return TABLE_FUNCTIONS.by_id[self.function]
