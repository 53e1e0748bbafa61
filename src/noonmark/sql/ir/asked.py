"""Scalars whose value a plan does not have: it is put in when the plan is run.

    Parameter    $1: a value that the client sends with each execution
    Now          mz_now(): the time at which the query is asked
    Ask          a question to the session: who is asking, what the catalog says of an object

A plan is made once and run many times: `bind` puts literals in their place. What a maintained view
may have of these is `Now` alone, and only in temporal filters (`ir.temporal`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from noonmark.errors import DatatypeMismatch, UndefinedParameter
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function
from noonmark.sql.ir.node import Node, rebuild, walk_once
from noonmark.sql.ir.scalar import Literal, Scalar

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True)
class Parameter(Scalar):
    """The value of $index. `types` are those that the statement's parameters have so far."""

    type: t.SqlType
    nullable: bool = field(init=False)
    index: int
    types: dict[int, t.SqlType] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nullable", True)

    def declared(self, target: t.SqlType) -> Parameter:
        """The parameter once its place asks for a type: the first place decides."""
        return Parameter(self.types.setdefault(self.index, unsized(target)), self.index, self.types)


def unsized(target: t.SqlType) -> t.SqlType:
    """The type without a length and digits: what a parameter, or a literal of no type, is read as.

    >>> str(unsized(t.Numeric(10, 2))), str(unsized(t.Array(t.Varchar(3))))
    ('numeric', 'character varying[]')
    """
    match target:
        case t.Numeric():
            return t.Numeric()
        case t.Varchar():
            return t.Varchar()
        case t.Char():
            return t.Char(None)
        case t.Coded():
            return target.unsized
        case t.Array(element):
            return t.Array(unsized(element))
    return target


@dataclass(frozen=True, slots=True)
class Now(Scalar):
    """The time of the query, in milliseconds since the epoch; `position` is where it is written."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    position: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", t.BigInt())
        object.__setattr__(self, "nullable", False)


@dataclass(frozen=True, slots=True)
class Ask(Scalar):
    """What the session answers: a function whose meaning is the session's own."""

    type: t.SqlType = field(init=False)
    nullable: bool = field(init=False)
    function: str
    arguments: tuple[Scalar, ...]
    entry: Function = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        types = tuple(argument.type for argument in self.arguments)
        if not self.entry.takes(types):
            shown = ", ".join(map(str, types))
            raise DatatypeMismatch(f"{self.entry.id} does not take ({shown})")
        object.__setattr__(self, "type", self.entry.result_type(types))
        object.__setattr__(self, "nullable", True)

    @property
    def fails(self) -> bool:
        """Whether the session may refuse to answer."""
        return self.entry.fails(tuple(argument.type for argument in self.arguments))


def is_volatile(node: Node) -> bool:
    """Whether a plan asks the session something that it answers anew for every row."""
    return any(isinstance(each, Ask) and each.entry.volatile for each in walk_once(node))


def asked(node: Node) -> frozenset[type[Scalar]]:
    """The kinds of what a plan still needs to be told."""
    kinds = (Parameter, Now, Ask)
    return frozenset(type(each) for each in walk_once(node) if isinstance(each, kinds))


def unplaced(node: N) -> N:
    """The plan of another text: where mz_now() stands there says nothing here."""
    if Now not in asked(node):
        return node

    def act(each: Any) -> Node:
        if id(each) not in done:
            done[id(each)] = (each, Now() if isinstance(each, Now) else rebuild(each, act))
        return done[id(each)][1]

    done: dict[int, tuple[Node, Node]] = {}
    result: N = rebuild(node, act)
    return result


def _settled(kind: t.SqlType, value: Any) -> Any:
    """A value as plans have it: an array is a tuple, whatever the client's driver made of it."""
    if isinstance(kind, t.Array) and isinstance(value, list):
        return tuple(_settled(kind.element, each) for each in value)
    return value


def bind(node: N, values: Sequence[Any], now: int | None = None) -> N:
    """The plan with the parameters' values, and the time if it is known, in their places.

    A question to the session without arguments is asked here, once, if it has one answer.

    Raises:
        UndefinedParameter: there are fewer values than it takes.
    """

    def act(each: Any) -> Node:
        match each:
            case Parameter(index=index) if index > len(values):
                raise UndefinedParameter(f"there is no parameter ${index}")
            case Parameter():
                return Literal(each.type, _settled(each.type, values[each.index - 1]))
            case Now() if now is not None:
                return Literal(each.type, now)
            case Ask(arguments=(), entry=entry) if not entry.volatile:
                return Literal(each.type, each.entry.meaning())
        changed: Node = rebuild(each, once)
        return changed

    done: dict[int, tuple[Node, Node]] = {}

    def once(each: Any) -> Node:
        # A plan shares its subplans; what is shared is changed once and stays shared.
        if id(each) not in done:
            done[id(each)] = (each, act(each))
        return done[id(each)][1]

    change: Callable[[Any], Any] = once
    result: N = change(node)
    return result
