"""Generated documents and SQL/JSON paths, many of which do not fit each other."""

from __future__ import annotations

import json
from random import Random
from typing import Any

_KEYS = ("a", "b", "c d")
_SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -3, 1.5, 10.25, "", "a", "ab", "b\nab", "A", "1.5", "zz"),
)


def document(random: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return random.choice(_SCALARS)
    if kind < 0.65:
        return [document(random, depth - 1) for _ in range(random.randrange(4))]
    keys = random.sample(_KEYS, random.randrange(1, len(_KEYS) + 1))
    return {key: document(random, depth - 1) for key in keys}


def path(random: Random) -> str:
    """A path, strict or lax."""
    mode = random.choice(("", "", "lax ", "strict "))
    if random.random() < 0.35:
        return mode + _predicate(random, 2, "$")
    return mode + _expression(random, 2, "$")


def _literal(random: Random) -> str:
    return json.dumps(random.choice(_SCALARS))


def _expression(random: Random, depth: int, item: str) -> str:
    kind = random.random()
    if depth and kind < 0.12:
        sign = random.choice("+-*/%")
        sides = (_expression(random, depth - 1, item) for _ in range(2))
        return f" {sign} ".join(sides)
    if depth and kind < 0.18:
        return random.choice("+-") + _expression(random, depth - 1, item)
    if depth and kind < 0.24:
        return f"({_expression(random, depth - 1, item)}){_accessor(random, depth - 1)}"
    if depth and kind < 0.28:
        return f"({_predicate(random, depth - 1, item)}).type()"
    if kind < 0.38:
        return _literal(random)
    if kind < 0.43:
        return random.choice(("$x", '$"y"', "$z"))
    start = "$" if random.random() < 0.2 else item
    return start + "".join(_accessor(random, depth) for _ in range(random.randrange(4)))


def _accessor(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.35:
        key = random.choice(_KEYS)
        return f".{key}" if key.isidentifier() and random.random() < 0.7 else f'."{key}"'
    if kind < 0.45:
        return "[*]"
    if kind < 0.5:
        return ".*"
    if kind < 0.57:
        return random.choice((".**", ".**{1}", ".**{0 to 1}", ".**{1 to last}", ".**{last}"))
    if kind < 0.72:
        return f"[{_subscripts(random, depth)}]"
    if kind < 0.85 or not depth:
        return random.choice((".type()", ".size()", ".abs()", ".floor()", ".ceiling()"))
    return f" ? ({_predicate(random, depth - 1, '@')})"


def _subscripts(random: Random, depth: int) -> str:
    def one() -> str:
        if depth and random.random() < 0.1:
            return _expression(random, 0, "$")
        return random.choice(("0", "1", "2", "last", "last - 1", "-1", "0.9", '"a"'))

    parts = [one() if random.random() < 0.6 else f"{one()} to {one()}" for _ in range(2)]
    return ", ".join(parts[: random.randrange(1, 3)])


def _predicate(random: Random, depth: int, item: str) -> str:
    kind = random.random()
    if depth and kind < 0.25:
        sign = random.choice(("&&", "||"))
        sides = (_predicate(random, depth - 1, item) for _ in range(2))
        return f" {sign} ".join(sides)
    if depth and kind < 0.32:
        return f"!({_predicate(random, depth - 1, item)})"
    if depth and kind < 0.38:
        return f"({_predicate(random, depth - 1, item)}) is unknown"
    left = _expression(random, max(depth - 1, 0), item)
    if kind < 0.48:
        return f"exists({left})"
    if kind < 0.55:
        return f"{left} starts with {random.choice((json.dumps('a'), '$x'))}"
    if kind < 0.63:
        flags = random.choice(("", "", ' flag "i"', ' flag "m"', ' flag "sm"', ' flag "q"'))
        return f'{left} like_regex "{random.choice(("^a", "b.a", "a$", "[ab]+", "."))}"{flags}'
    sign = random.choice(("==", "!=", "<>", "<", "<=", ">", ">="))
    return f"{left} {sign} {_expression(random, max(depth - 1, 0), item)}"
