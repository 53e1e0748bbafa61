"""jsonb as canonical text.

The canonical form is what PostgreSQL prints for a jsonb value: one blank after ``:`` and ``,``; of
equal keys the last wins; keys ordered by their length in bytes, then by their bytes; a number is a
numeric, printed exactly and without an exponent, its trailing zeros kept; escapes only where JSON
needs them.

Law (canonical): ``canonical(canonical(x)) == canonical(x)``; and documents that differ only in the
order and repetition of keys, blanks, escapes and exponents have equal text.

Refused, as PostgreSQL does: a NUL character, half of a surrogate pair, NaN and the infinities.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from noonmark.errors import InvalidValue


class Untranslatable(InvalidValue, id="untranslatable", sqlstate="22P05"):
    """A character that text cannot hold: NUL."""


# PostgreSQL's numeric: digits before and after the point.
_WHOLE_DIGITS_MAX, _FRACTION_DIGITS_MAX = 131_072, 16_383

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def canonical(document: str | dict[str, Any] | list[Any]) -> str:
    """The canonical text of JSON text, or of a dict or list of such values.

    >>> canonical('{"bb":1e2, "a":[], "bb":1.50}')
    '{"a": [], "bb": 1.50}'
    """
    try:
        return _write(_parse(document) if isinstance(document, str) else document)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidValue(
            f"invalid input syntax for type jsonb: {str(document)[:100]!r}", detail=str(error)
        ) from None


def check(text: str) -> str:
    """The text, which is a JSON document; json is kept as it is written.

    Raises:
        InvalidValue: it is none.
    """
    try:
        json.loads(text, parse_int=len, parse_float=len, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("invalid input syntax for type json", detail=str(error)) from None
    return text


def quoted(text: str) -> str:
    """A text as a JSON string."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _write(node: Any) -> str:
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, Decimal):
        return _number(node)
    if isinstance(node, str):
        return _string(node)
    if isinstance(node, list | tuple):
        return f"[{', '.join(map(_write, node))}]"
    if isinstance(node, int | float):
        return _number(Decimal(repr(node)))
    if not isinstance(node, dict):
        raise TypeError(f"{type(node).__name__} has no form in JSON")
    items = sorted((len(raw), raw, key) for key in node for raw in (_utf8(key),))
    return "{" + ", ".join(f"{_string(key)}: {_write(node[key])}" for *_, key in items) + "}"


def _utf8(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError("a key of an object is not a string")
    if "\0" in text:
        raise Untranslatable("unsupported Unicode escape sequence", detail="\\u0000 is no text.")
    if _SURROGATE.search(text):
        raise ValueError("a string has half of a surrogate pair")
    return text.encode()


def _string(text: str) -> str:
    _utf8(text)
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _number(number: Decimal) -> str:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is not a JSON number")
    if number.adjusted() >= _WHOLE_DIGITS_MAX or -exponent > _FRACTION_DIGITS_MAX:
        raise ValueError("number out of range of numeric")
    if not number:
        return "0." + "0" * -exponent if exponent < 0 else "0"
    return format(number, "f")
