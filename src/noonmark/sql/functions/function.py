"""One function (or operator) for one list of argument types, and the table of them all.

Law (allow-list): a plan calls only functions of the table, each with arguments of exactly the
types that its entry names. Operators are functions whose names are signs.

Law (strict): a strict function is NULL when an argument is NULL, and its meaning is never asked.
``gives_null`` says whether it may be NULL although no argument is.

Law (fallible): a function that is not fallible raises for no arguments. Rules move only such
calls to where they are asked of more rows.

Law (edition): whoever changes what a function gives for some arguments raises its `edition`. What
is kept of it is named after the edition, too (`sql.ir.encoding`), and views that call it are
computed anew (`compute.view.view`). ``tests/sql/meanings.txt`` keeps samples of every function.

The meaning takes Python values (`noonmark.rows.value`; an array is a tuple here, so that every
value can be hashed) and gives one; what it gives is then fitted to the result type by
`functions.number.fit`, which rounds numerics and refuses numbers out of range.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from noonmark.rows import types as t


class Any_(enum.Enum):  # noqa: N801 - the name Any is taken
    """Parameters that take more than one type."""

    ANY = "any"  # whatever it is
    ELEMENT = "anyelement"  # the same type wherever it stands in one call
    ARRAY = "anyarray"  # an array of what ELEMENT stands for


Parameter = type[t.SqlType] | Any_
Result = t.SqlType | Callable[[tuple[t.SqlType, ...]], t.SqlType]


@dataclass(frozen=True, slots=True)
class Signature:
    """A name, the types it takes and the type it gives; ``id`` is what a plan refers to."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Result
    meaning: Callable[..., Any]
    strict: bool = True
    gives_null: bool = False
    variadic: bool = False  # the last parameter may occur once or more
    exact: bool = False  # each argument is of its parameter's type, or of no type yet
    scalar: bool = False  # of a table function: one column, also where that is a record
    element: type[t.SqlType] = t.Text  # of parameters that are arrays of a type of their own
    edition: int = 1
    id: str = field(init=False)

    def __post_init__(self) -> None:
        texts = [p.value if isinstance(p, Any_) else p.spelling for p in self.parameters]
        if self.variadic:
            texts[-1] += "..."
        object.__setattr__(self, "id", f"{self.name}({', '.join(texts)})")

    def result_type(self, arguments: tuple[t.SqlType, ...]) -> t.SqlType:
        """The type of the result for arguments that `takes`."""
        return self.result if isinstance(self.result, t.SqlType) else self.result(arguments)

    def columns(self, arguments: tuple[t.SqlType, ...], name: str) -> tuple[t.Field, ...]:
        """The columns of a table function; one that has no name of its own gets `name`."""
        result = self.result_type(arguments)
        if isinstance(result, t.Record) and not self.scalar:
            return result.fields
        return (t.Field(name, result),)

    def parameters_for(self, count: int) -> tuple[Parameter, ...] | None:
        """The parameters of a call with that many arguments, if it can be one."""
        if count == len(self.parameters):
            return self.parameters
        if self.variadic and count > len(self.parameters):
            return self.parameters + self.parameters[-1:] * (count - len(self.parameters))
        return None

    def takes(self, arguments: tuple[t.SqlType, ...]) -> bool:
        """Whether the types fit as they are, without a cast."""
        parameters = self.parameters_for(len(arguments))
        if parameters is None:
            return False
        element: t.SqlType | None = None
        for parameter, argument in zip(parameters, arguments, strict=True):
            if isinstance(parameter, type):
                if type(argument) is not parameter:
                    return False
                continue
            if parameter is Any_.ANY:
                continue
            own: t.SqlType = argument
            if parameter is Any_.ARRAY:
                if not isinstance(argument, t.Array):
                    return False
                own = argument.element
            if element is not None and own != element:
                return False
            element = own
        return True


@dataclass(frozen=True, slots=True)
class Function(Signature):
    """A function of one row's values."""

    fallible: bool | Callable[[tuple[t.SqlType, ...]], bool] = False  # may depend on the types
    decided_by: tuple[int, ...] = ()  # the arguments that alone decide whether it fails
    null_by_first: bool = False  # not strict, and yet NULL if the first argument is
    typed: bool = False  # the meaning takes the tuple of argument types before the arguments
    volatile: bool = False  # it does something: it is asked once for every row, equal or not
    waits: bool = False  # its meaning is a coroutine of the session: only a worker may ask for it
    #: For a function whose result may be much longer than its arguments: about how long it is,
    #: or how long a text is that takes as much to make.
    size: Callable[..., float] | None = None
    #: Whether a hundred characters of its arguments take a microsecond at most: what is not said to
    #: be so may take the square of their length, or more.
    linear: bool = False
    #: For a function of a text and a pattern: about how many microseconds it takes to look for the
    #: pattern in a text of a length; infinite where the text does not bound it.
    steps: Callable[[str, int], float] | None = None

    def fails(self, arguments: tuple[t.SqlType, ...]) -> bool:
        """Whether some arguments of these types make it raise."""
        return self.fallible if isinstance(self.fallible, bool) else self.fallible(arguments)


S = TypeVar("S", bound=Signature)


class Table(Generic[S]):
    """The functions by id and by name; filled while the package is imported, then only read."""

    def __init__(self) -> None:
        self.by_id: dict[str, S] = {}
        self.by_name: dict[str, list[S]] = {}

    def add(self, functions: Iterable[S]) -> None:
        """Put functions into the table; an id can be there only once."""
        for function in functions:
            assert function.id not in self.by_id, f"{function.id} is in the table twice"
            self.by_id[function.id] = function
            self.by_name.setdefault(function.name, []).append(function)
