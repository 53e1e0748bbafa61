"""Which of the functions of one name a call means, as PostgreSQL chooses.

Law (choice): of the functions that take the arguments after implicit casts,

1. those with the most arguments of exactly their type;
2. of these, those with the most arguments that are so or go to the preferred type of their
   category;
3. of these, for each literal of no type: the category text if one of them takes text there, else
   the one category that all of them take; and of that category the preferred type if one takes it;
4. of these, the one that takes every literal of no type as the one type of all other arguments.

What leaves more than one is ambiguous, unless all are ours and one of them takes any type wherever
they differ: there the first is as good as any. Functions of types that Noonmark does not have take
part (`functions.elsewhere`); a call that means one of them is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from sqlglot import exp

from noonmark.errors import (
    CannotCast,
    DatatypeMismatch,
    NoonmarkError,
    UndefinedFunction,
    UndefinedObject,
    Unsupported,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.coded.ranges import Multirange, Range
from noonmark.rows.order import has_equality
from noonmark.sql.coerce import UNKNOWN, as_kind, coerce, common_type, is_implicit, is_open
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import AGGREGATES
from noonmark.sql.functions.elsewhere import ELSEWHERE, Kind, category, element_of
from noonmark.sql.functions.errors import AmbiguousFunction
from noonmark.sql.functions.function import Any_, Parameter, Signature, Table
from noonmark.sql.functions.statistics import ORDERED_SETS
from noonmark.sql.ir.asked import unsized
from noonmark.sql.ir.scalar import Scalar

S = TypeVar("S", bound=Signature)


@dataclass(frozen=True, slots=True)
class _Candidate(Generic[S]):
    """A function that takes the arguments: ours, or one of a type that we have not."""

    kinds: tuple[Kind | None, ...]  # None stands for any type
    entry: S | None = None
    targets: tuple[t.SqlType, ...] = ()


def resolve(
    table: Table[S],
    name: str,
    arguments: Sequence[Scalar],
    position: int | None = None,
    *,
    operator: bool = False,
) -> tuple[S, tuple[Scalar, ...]]:
    """The function of that name that fits best, and the arguments as it takes them."""
    types = [argument.type for argument in arguments]
    if operator and len(types) == 2 and (types[0] == UNKNOWN) != (types[1] == UNKNOWN):
        known = types[1] if types[0] == UNKNOWN else types[0]
        same = _fitting(table, name, [known, known])
        exact = any(each.kinds == (type(known),) * 2 for each in same)
        if exact or (same and isinstance(known, t.Array)):
            types = [known, known]
    fitting = _fitting(table, name, types) or _fitting(table, name, types, guess=True)
    candidates = [*fitting, *_foreign(name, types)]
    if not candidates:
        _check_nesting(table, name, types, position)
        raise _undefined(name, types, position, operator)
    found = _chosen(candidates, types)
    if len(found) > 1 and _are_of_any_range(found):
        raise _no_type(position)
    if len(found) > 1 and not _are_alike(found):
        raise AmbiguousFunction(
            f"{_shown(name, types, operator)} is not unique",
            hint="Could not choose a best candidate. You might need to add explicit type casts.",
            position=position,
        )
    best = found[0]
    if best.entry is None:
        foreign = ", ".join(kind for kind in best.kinds if isinstance(kind, str))
        shown = _shown(name, types, operator)
        raise Unsupported(f"{shown} means one of type {foreign}", position=position)
    _check_polymorphic(best.entry, types, position)
    _check_equality(best.entry.name, best.targets, position)
    targets = _as_written(best.entry, best.targets, arguments)
    pairs = zip(arguments, targets, strict=True)
    return best.entry, tuple(coerce(argument, target, position) for argument, target in pairs)


def _as_written(
    entry: Signature, targets: Sequence[t.SqlType], arguments: Sequence[Scalar]
) -> list[t.SqlType]:
    """The targets, where what has no type of its own keeps the digits that are written.

    So do, with it, all arguments that must be of one type.
    """
    parameters = entry.parameters_for(len(arguments)) or ()
    pairs = list(zip(parameters, arguments, strict=True))
    alike = (Any_.ELEMENT, Any_.ARRAY)
    some = any(is_open(argument) for parameter, argument in pairs if parameter in alike)
    return [
        unsized(target) if is_open(argument) or (some and parameter in alike) else target
        for target, (parameter, argument) in zip(targets, pairs, strict=True)
    ]


def _are_alike(found: Sequence[_Candidate[S]]) -> bool:
    """Whether the first is as good as any: one of them takes any type wherever they differ."""
    places = [set(kinds) for kinds in zip(*(each.kinds for each in found), strict=True)]
    ours = all(each.entry is not None for each in found)
    return ours and all(len(kinds) == 1 or None in kinds for kinds in places)


def _chosen(candidates: list[_Candidate[S]], types: Sequence[t.SqlType]) -> list[_Candidate[S]]:
    """Those that are left of the candidates: see the module."""
    known = [(at, type(each)) for at, each in enumerate(types) if each != UNKNOWN]

    def exact(each: _Candidate[S]) -> int:
        return sum(each.kinds[at] is kind for at, kind in known)

    def liked(each: _Candidate[S]) -> int:
        return sum(each.kinds[at] is kind or _is_preferred(each, at, kind) for at, kind in known)

    for score in (exact, liked):
        candidates = _most(candidates, score)
        if len(candidates) == 1:
            return candidates
    if len(known) == len(types):
        return candidates
    candidates = _by_category(candidates, [at for at, e in enumerate(types) if e == UNKNOWN])
    if len(candidates) == 1 or not known or len({kind for _, kind in known}) > 1:
        return candidates
    one = types[known[0][0]]
    taking = [each for each in candidates if all(_takes(kind, one) for kind in each.kinds)]
    return taking if len(taking) == 1 else candidates


def _takes(kind: Kind | None, source: t.SqlType) -> bool:
    if isinstance(kind, str):
        element = element_of(kind)
        if element is not None:
            return _is_array_of(source, element)
        return kind == "anyelement" or (kind == "timetz" and isinstance(source, t.Time))
    return kind is None or is_implicit(source, kind)


def _most(
    candidates: list[_Candidate[S]], score: Callable[[_Candidate[S]], int]
) -> list[_Candidate[S]]:
    best = max(map(score, candidates))
    return [each for each in candidates if score(each) == best]


def _is_preferred(candidate: _Candidate[S], at: int, own: type[t.SqlType]) -> bool:
    kind = candidate.kinds[at]
    return kind is not None and category(kind) == (category(own)[0], True)


def _by_category(candidates: list[_Candidate[S]], places: Sequence[int]) -> list[_Candidate[S]]:
    """Those that take literals of no type as one category, and as its preferred type."""
    wanted: dict[int, tuple[str, bool]] = {}
    for at in places:
        slots = [_slot(each, at) for each in candidates]
        found = {each for each, _ in slots}
        if len(found) > 1 and "S" not in found:
            return candidates
        own = "S" if "S" in found else found.pop()
        wanted[at] = own, (own, True) in slots
    kept = []
    for candidate in candidates:
        for at, (own, preferred) in wanted.items():
            slot = _slot(candidate, at)
            if slot[0] != own or (preferred and not slot[1]):
                break
        else:
            kept.append(candidate)
    return kept or candidates


def _slot(candidate: _Candidate[S], at: int) -> tuple[str, bool]:
    kind = candidate.kinds[at]
    return ("P", False) if kind is None else category(kind)


def _foreign(name: str, types: Sequence[t.SqlType]) -> list[_Candidate[S]]:
    """Functions of types that we have not: they take what they can and literals of no type."""
    return [
        _Candidate(kinds)
        for kinds in ELSEWHERE.get(name, ())
        if len(kinds) == len(types)
        and all(
            source == UNKNOWN or _takes(kind, source)
            for kind, source in zip(kinds, types, strict=True)
        )
    ]


#: Of these PostgreSQL takes literals of no type for text; their parameters are "compatible".
_COMPATIBLE = frozenset(
    ("array_append", "array_prepend", "array_cat", "array_position", "array_positions",
     "array_remove", "array_replace", "width_bucket", "||", "greatest", "least", "min", "max")
)  # fmt: skip
#: So of these with three arguments alone.
_COMPATIBLE_OF_THREE = frozenset(("lag", "lead"))
#: Of any type here; there, of whichever type the argument has.
_POLYMORPHIC = frozenset(("to_jsonb", "to_json", "jsonb_agg"))


def _check_polymorphic(entry: Signature, types: Sequence[t.SqlType], position: int | None) -> None:
    """A function of some type or other must be told of which."""
    parameters = entry.parameters_for(len(types)) or ()
    open_ = [
        source
        for parameter, source in zip(parameters, types, strict=True)
        if parameter in (Any_.ELEMENT, Any_.ARRAY) or entry.name in _POLYMORPHIC
    ]
    is_text = entry.name in _COMPATIBLE
    is_text = is_text or (entry.name in _COMPATIBLE_OF_THREE and len(types) == 3)
    if open_ and not is_text and all(each == UNKNOWN for each in open_):
        raise _no_type(position)


#: What compares values, and what is missing where they have no equality.
_COMPARING = {
    **dict.fromkeys(
        ("array_position", "array_positions", "array_remove", "array_replace"),
        "an equality operator",
    ),
    **dict.fromkeys(("greatest", "least", "width_bucket"), "a comparison function"),
}


def _check_equality(name: str, targets: Sequence[t.SqlType], position: int | None) -> None:
    """Functions that compare values take none that cannot be compared."""
    for each in targets if name in _COMPARING else ():
        kind = each.element if isinstance(each, t.Array) else each
        if not has_equality(kind):
            raise UndefinedFunction(
                f"could not identify {_COMPARING[name]} for type {kind}", position=position
            )


def _no_type(position: int | None) -> DatatypeMismatch:
    return DatatypeMismatch(
        "could not determine polymorphic type because input has type unknown", position=position
    )


def _are_of_any_range(found: Sequence[_Candidate[S]]) -> bool:
    """Whether PostgreSQL has one function for all of them: of any range, or of any multirange."""
    shapes = {tuple(map(_shape, each.kinds)) for each in found}
    return len(shapes) == 1 and not {Range, Multirange}.isdisjoint(shapes.pop())


def _shape(kind: Kind | None) -> Kind | None:
    own = (
        each for each in (Range, Multirange) if isinstance(kind, type) and issubclass(kind, each)
    )
    return next(own, kind)


def _check_nesting(
    table: Table[S], name: str, types: Sequence[t.SqlType], position: int | None
) -> None:
    """A literal of no type that would be an array of arrays: there is no such type."""
    if name not in _COMPATIBLE:
        return
    for entry in table.by_name.get(name, ()):
        pairs = list(zip(entry.parameters_for(len(types)) or (), types, strict=False))
        elements = [e for p, e in pairs if p is Any_.ELEMENT and e != UNKNOWN]
        nested = elements and all(isinstance(each, t.Array) for each in elements)
        if nested and (Any_.ARRAY, UNKNOWN) in pairs:
            raise UndefinedObject(
                f"could not find array type for data type {elements[0]}", position=position
            )


def _fitting(
    table: Table[S], name: str, types: Sequence[t.SqlType], *, guess: bool = False
) -> list[_Candidate[S]]:
    """The entries that take the types; `guess` makes text of what nothing gives a type."""
    fits = []
    for entry in table.by_name.get(name, ()):
        parameters = entry.parameters_for(len(types))
        targets = None if parameters is None else _targets(entry, parameters, types, guess=guess)
        if parameters is not None and targets is not None:
            kinds = tuple(each if isinstance(each, type) else None for each in parameters)
            fits.append(_Candidate(kinds, entry, tuple(targets)))
    return fits


def _targets(
    entry: Signature, parameters: Sequence[Parameter], types: Sequence[t.SqlType], *, guess: bool
) -> list[t.SqlType] | None:
    """What each argument becomes for these parameters; None if it cannot."""
    element = _element(parameters, types, guess=guess)
    targets: list[t.SqlType] = []
    for parameter, source in zip(parameters, types, strict=True):
        if parameter is Any_.ANY:
            targets.append(t.Text() if source == UNKNOWN else source)
        elif isinstance(parameter, Any_):
            if element is None:
                return None
            targets.append(t.Array(element) if parameter is Any_.ARRAY else element)
        elif parameter is t.Enum:
            enums = {each for each in types if each != UNKNOWN}
            if len(enums) != 1 or not isinstance(made := enums.pop(), t.Enum):
                return None  # nothing says which enum it is, or it is several
            targets.append(made)
        elif parameter is t.Array:
            if source != UNKNOWN and not _is_array_of(source, entry.element):
                return None
            targets.append(t.Array(entry.element()))
        elif not is_implicit(source, parameter) or (entry.exact and _differs(source, parameter)):
            return None
        else:
            targets.append(as_kind(source, parameter))
    return targets


def _differs(source: t.SqlType, parameter: type[t.SqlType]) -> bool:
    return source != UNKNOWN and type(source) is not parameter


def _is_array_of(source: t.SqlType, element: type[t.SqlType]) -> bool:
    return isinstance(source, t.Array) and is_implicit(source.element, element)


def _element(
    parameters: Sequence[Parameter], types: Sequence[t.SqlType], *, guess: bool
) -> t.SqlType | None:
    """The one type that every anyelement stands for."""
    found: list[t.SqlType] = []
    for parameter, source in zip(parameters, types, strict=True):
        if parameter is Any_.ELEMENT:
            found.append(source)
        elif parameter is Any_.ARRAY and isinstance(source, t.Array):
            found.append(source.element)
        elif parameter is Any_.ARRAY and source != UNKNOWN:
            return None
    has_array = Any_.ARRAY in parameters
    if has_array and any(isinstance(each, t.Array) for each in found):
        return None  # there are no arrays of arrays
    if has_array and not guess and not any(isinstance(each, t.Array) for each in types):
        return None
    try:
        return common_type(found, "argument")
    except (CannotCast, DatatypeMismatch):
        return None


def _shown(name: str, types: Sequence[t.SqlType], operator: bool) -> str:
    texts = [str(each) for each in types]
    if operator:
        return f"operator {' '.join([*texts[:-1], name, texts[-1]])}"
    return f"function {name}({', '.join(texts)})"


def _undefined(
    name: str, types: Sequence[t.SqlType], position: int | None, operator: bool
) -> UndefinedFunction:
    kind = "operator" if operator else "function"
    return UndefinedFunction(
        f"{_shown(name, types, operator)} does not exist",
        hint=f"No {kind} matches the given name and argument types. "
        "You might need to add explicit type casts.",
        position=position,
    )


def require_star(name: str, tree: exp.Anonymous) -> None:
    """Refuse ``count()``: an aggregate of whole rows is written with a star."""
    parameterless = any(not entry.parameters for entry in AGGREGATES.by_name.get(name, ()))
    if parameterless and not tree.expressions:
        message = f"{name}(*) must be used to call a parameterless aggregate function"
        raise WrongObjectType(message, position=position_of(tree))


def require_within(name: str, arguments: Sequence[Scalar], position: int | None) -> NoReturn:
    """Refuse an aggregate of an ordered set that has no order; first, one that does not exist."""
    if name in ORDERED_SETS:
        try:
            resolve(AGGREGATES, name, arguments, position)
        except (UndefinedFunction, AmbiguousFunction):
            raise
        except NoonmarkError:
            pass  # there is one: whether it takes these values is asked later
    message = f"WITHIN GROUP is required for ordered-set aggregate {name}"
    raise WrongObjectType(message, position=position)
