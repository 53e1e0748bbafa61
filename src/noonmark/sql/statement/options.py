"""Options in brackets: ``(TICK INTERVAL '1s', SCALE FACTOR = 0.01, SNAPSHOT, PASSWORD SECRET p)``.

An option is words, an optional ``=``, and a value; without a value it is True. Its key is the words
in lower case with ``_`` between them: ``tick_interval``. Options that are spans of time are given
in milliseconds, under the same key.
"""

from __future__ import annotations

from typing import Any

from noonmark.errors import InvalidSyntax, InvalidValue, NoonmarkError, UndefinedObject
from noonmark.rows.pg.intervals import parse_interval
from noonmark.sql.statement.objects import SecretRef
from noonmark.sql.statement.reader import Reader

#: The one cluster.
CLUSTER = "default"
_SPANS = frozenset(("tick_interval", "retain_history", "timeout", "probe_interval"))
_WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


def options(reader: Reader) -> dict[str, Any]:
    """The options in brackets, if brackets are next."""
    found: dict[str, Any] = {}
    if not reader.accept("("):
        return found
    while not reader.accept(")"):
        position = reader.position
        key, value = _option(reader)
        if key in found:
            raise InvalidSyntax(f"option {key} is given more than once", position=position)
        found[key] = value
        if not reader.is_next(")"):
            reader.expect(",")
    return found


def with_options(reader: Reader) -> dict[str, Any]:
    """``WITH (...)``, if it is next."""
    return options(reader) if reader.accept("with") else {}


def _option(reader: Reader) -> tuple[str, Any]:
    words: list[str] = []
    while reader.token.kind in ("word", "quoted") and not reader.is_next("secret"):
        words.append(reader.take().value)
    if not words:
        raise reader.invalid("expected an option")
    position = reader.position
    value: Any = True
    if reader.accept("=") or (not reader.is_next(",") and not reader.is_next(")")):
        value = _value(reader)
    elif len(words) > 1 and words[-1] in (*_WORDS, "strict", "auto"):
        word = words.pop()
        value = _WORDS.get(word, word)
    if words[-1] in ("for", "interval") and len(words) > 1 and words[0] != "tick":
        words.pop()  # RETAIN HISTORY FOR '1h', RETAIN HISTORY FOR INTERVAL '1h'
    if words[-1] == "for":
        words.pop()
    key = "_".join(words)
    return key, span_ms(value, position) if key in _SPANS and value is not True else value


def _value(reader: Reader) -> Any:
    reader.accept("for")
    reader.accept("interval")
    if reader.accept("secret"):
        return SecretRef(reader.name())
    if reader.accept("("):
        items = reader.list_of(lambda: _value(reader))
        reader.expect(")")
        return items
    token = reader.token
    if token.kind == "string":
        return reader.take().value
    if token.kind == "number" or reader.is_next("-"):
        sign = -1 if reader.accept("-") else 1
        text = reader.take().value
        try:
            return sign * (int(text) if text.isdigit() else float(text))
        except ValueError:
            raise InvalidSyntax(f"{text} is not a number", position=token.start + 1) from None
    if token.kind in ("word", "quoted"):
        name = reader.name()
        word = str(name)
        return _WORDS.get(word, word) if token.kind == "word" else word
    raise reader.invalid("expected a value")


def span_ms(value: Any, position: int) -> int:
    """A span of time in milliseconds; a plain number already is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        span = parse_interval(str(value))
    except NoonmarkError as error:
        raise InvalidValue(error.message, position=position) from None
    if span.months:
        raise InvalidValue(
            f'"{value}" has months, whose length is not fixed',
            hint="Use days or shorter units.",
            position=position,
        )
    return int((span.days * 86_400_000_000 + span.micros) // 1000)


def in_cluster(reader: Reader) -> None:
    """IN CLUSTER name, where it is written; see `one_cluster`."""
    if reader.accept("in", "cluster"):
        one_cluster(reader)


def one_cluster(reader: Reader) -> None:
    """The name of a cluster: there is one, and no other is taken for it.

    Raises:
        UndefinedObject: it is another name.
    """
    position, name = reader.position, reader.identifier()
    if name != CLUSTER:
        raise UndefinedObject(
            f'unknown cluster "{name}"',
            hint=f'There is one cluster, "{CLUSTER}": Spark is its size. Leave IN CLUSTER out.',
            position=position,
        )
