"""What a sequence is: its type, bounds, step and start, as CREATE and ALTER SEQUENCE say them.

A sequence is an item of the catalog whose definition is plain data:

    uid         what DEFAULT remembers it by, whatever it is called
    state       which numbers were given out is kept under this name; RESTART gives it another
    first       the first number of that state
    type, start, increment, min, max, cache, cycle    as in PostgreSQL
    column      of the table that it belongs to (`Item.part_of`), if it belongs to one

So RESTART is a change of the catalog: transactional, though giving out numbers is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonmark.errors import UsageError
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(
    last_value="bigint not null", log_cnt="bigint not null", is_called="boolean not null"
)
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}
_ALIASES = {"int2": "smallint", "int": "integer", "int4": "integer", "int8": "bigint"}

Definition = dict[str, Any]


class InvalidSequence(UsageError, id="invalid_sequence", sqlstate="22023"):
    """Options of a sequence that do not go together."""


def bounds(kind: str) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    return -(1 << _BITS[kind]), (1 << _BITS[kind]) - 1


def defined(options: Mapping[str, Any], fresh: str) -> Definition:
    """The definition of a new sequence; `fresh` is a name that nothing else has.

    Raises:
        InvalidSequence: see `altered`.
    """
    base: Definition = {"uid": fresh, "type": "bigint", "increment": 1, "cache": 1, "cycle": False}
    made = _with(base, {"minvalue": None, "maxvalue": None, **options}, None)
    return {**made, "state": fresh, "first": made["start"]}


_WORDS = {
    "increment": "INCREMENT BY",
    "min": "MINVALUE",
    "max": "MAXVALUE",
    "start": "START WITH",
    "cache": "CACHE",
}


def written(definition: Mapping[str, Any]) -> str:
    """The options of a sequence that are not the usual ones, as they are written.

    >>> written(defined({"type": "integer", "increment": -2, "maxvalue": 9, "cycle": True}, "x"))
    'INCREMENT BY -2 MAXVALUE 9 CYCLE'
    >>> written(defined({"type": "smallint"}, "x"))
    ''
    """
    way = {name: definition[name] for name in ("type", "increment")}
    usual = {**defined(way, ""), "increment": 1}
    usual["start"] = definition["min" if definition["increment"] > 0 else "max"]
    found = [f"{word} {definition[name]}" for name, word in _WORDS.items()
             if definition[name] != usual[name]]  # fmt: skip
    return " ".join([*found, *(["CYCLE"] if definition["cycle"] else [])])


def altered(
    before: Definition, options: Mapping[str, Any], last: tuple[int, bool], fresh: str
) -> Definition:
    """The definition after ALTER SEQUENCE; `last` is where the sequence stands.

    Raises:
        InvalidSequence: a bound, a step, a start or where it stands is not possible.
    """
    made = _with(before, options, last)
    if "restart" in options:
        value = made["start"] if options["restart"] is None else options["restart"]
        _inside("RESTART", value, made)
        return {**made, "state": fresh, "first": value}
    return made


def _with(
    before: Definition, options: Mapping[str, Any], last: tuple[int, bool] | None
) -> Definition:
    made = dict(before)
    if "type" in options:
        kind = _ALIASES.get(options["type"], options["type"])
        if kind not in _BITS:
            raise InvalidSequence("sequence type must be smallint, integer, or bigint")
        made["type"] = kind
    for name in ("increment", "cycle", "cache"):
        made[name] = options.get(name, made[name])
    if made["increment"] == 0:
        raise InvalidSequence("INCREMENT must not be zero")
    up = made["increment"] > 0
    _bound(made, before, options, "max", bounds(made["type"])[1] if up else -1)
    _bound(made, before, options, "min", 1 if up else bounds(made["type"])[0])
    if made["min"] >= made["max"]:
        raise InvalidSequence(
            f"MINVALUE ({made['min']}) must be less than MAXVALUE ({made['max']})"
        )
    if "start" in options:
        made["start"] = options["start"]
    elif last is None:
        made["start"] = made["min"] if up else made["max"]
    _inside("START", made["start"], made)
    if last is not None and "restart" not in options:
        _inside("RESTART", last[0], made)
    if made["cache"] < 1:
        raise InvalidSequence(f"CACHE ({made['cache']}) must be greater than zero")
    return made


def _bound(
    made: Definition, before: Definition, options: Mapping[str, Any], name: str, usual: int
) -> None:
    word = f"{name}value"
    if options.get(word) is not None:
        made[name] = options[word]
    elif word in options or _was_usual(before, made, name):
        made[name] = usual
    least, most = bounds(made["type"])
    if not least <= made[name] <= most:
        raise InvalidSequence(
            f"{word.upper()} ({made[name]}) is out of range for sequence data type {made['type']}"
        )


def _was_usual(before: Definition, made: Definition, name: str) -> bool:
    """Whether a bound was the type's own, and the type is another now."""
    if before["type"] == made["type"] or name not in before:
        return False
    least, most = bounds(before["type"])
    return bool(before[name] == (most if name == "max" else least))


def _inside(word: str, value: int, made: Definition) -> None:
    if value < made["min"]:
        raise InvalidSequence(
            f"{word} value ({value}) cannot be less than MINVALUE ({made['min']})"
        )
    if value > made["max"]:
        raise InvalidSequence(
            f"{word} value ({value}) cannot be greater than MAXVALUE ({made['max']})"
        )
