"""Functions of plans that are asked again at every tick, and computed once.

Law: ``once(f)(x, ...)`` is ``f(x, ...)``: plans are frozen, so what was found for an object stays
true of it. Objects are told apart by identity, which costs nothing; what is remembered keeps its
object, so that no other can have its place in memory meanwhile.

Where it runs: driver and executors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

#: How many answers of one function are remembered: those of some hundred views.
ANSWERS_MAX = 16_384

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """The function, asked once for the same objects; the oldest answers are forgotten."""
    answers: dict[tuple[int, ...], tuple[tuple[object, ...], T]] = {}

    @wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        given = (*args, *kwargs.values())
        name = tuple(map(id, given))
        found = answers.get(name)
        if found is None:
            while len(answers) >= ANSWERS_MAX:
                answers.pop(next(iter(answers)), None)
            found = answers[name] = given, function(*args, **kwargs)
        return found[1]

    return asked
