r"""Arrays and records as text: the quoting, without the meaning of what is quoted.

    array   := "{" [ item { "," item } ] "}"
    record  := "(" field { "," field } ")"

An item is NULL, plain, or quoted with a backslash before each quote and backslash. A field is
nothing (which is NULL), plain, or quoted with each quote and backslash doubled.

Law: ``split_array(join_array(items)) == items``, the same for records, for any strings and NULLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from noonmark.errors import InvalidValue, Unsupported

_BLANKS = " \t\n\r\v\f"
#: By what stands between items.
_ARRAY_SPECIAL = {each: re.compile(rf'["\\{{}}{each}\s]', re.ASCII) for each in ",;"}
_RECORD_SPECIAL = re.compile(r'["\\(),\s]', re.ASCII)


def join_array(items: Iterable[str | None], delimiter: str = ",") -> str:
    """The text of an array."""
    special = _ARRAY_SPECIAL[delimiter]
    return "{" + delimiter.join(_array_item(item, special) for item in items) + "}"


def _array_item(item: str | None, special: re.Pattern[str]) -> str:
    if item is None:
        return "NULL"
    if item and item.upper() != "NULL" and not special.search(item):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


def join_record(items: Iterable[str | None]) -> str:
    """The text of a record."""
    return "(" + ",".join(map(_record_item, items)) + ")"


def _record_item(item: str | None) -> str:
    if item is None:
        return ""
    if item and not _RECORD_SPECIAL.search(item):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '""') + '"'


_NESTED = re.compile(r"[ \t\n\r\v\f]*\{")
_ARRAY_TOKEN = {
    each: re.compile(
        rf'[ \t\n\r\v\f]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^"\\{{}}{each}]|\\.)+))?'
        rf"[ \t\n\r\v\f]*(?P<end>[{each}}}])",
        re.DOTALL,
    )
    for each in ",;"
}


def split_array(text: str, delimiter: str = ",") -> list[str | None]:
    """The items of an array's text, unquoted."""
    body = text.strip(_BLANKS)
    if body.startswith("["):
        raise Unsupported(f"array bounds are not supported: {text[:100]!r}")
    if not (body.startswith("{") and body.endswith("}")):
        raise _malformed("array", text)
    if not body[1:-1].strip(_BLANKS):
        return []
    items: list[str | None] = []
    at, token = 1, _ARRAY_TOKEN[delimiter]
    while at < len(body):
        if _NESTED.match(body, at):
            raise Unsupported(f"arrays of more than one dimension: {text[:100]!r}")
        match = token.match(body, at)
        if match is None or (match["quoted"] is None and match["plain"] is None):
            raise _malformed("array", text)
        items.append(_array_value(match))
        at = match.end()
        if match["end"] == "}" and at != len(body):
            raise _malformed("array", text)
    return items


def _array_value(match: re.Match[str]) -> str | None:
    if match["quoted"] is not None:
        return _unescape(match["quoted"])
    plain = _trim(match["plain"])
    return None if plain.upper() == "NULL" else _unescape(plain)


def _trim(plain: str) -> str:
    """Without blanks at the end, but not those that a backslash keeps."""
    kept = plain.rstrip(_BLANKS)
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
    return plain[: len(kept) + 1] if escaped else kept


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text


_RECORD_TOKEN = re.compile(
    r'(?P<item>(?:"(?:[^"\\]|\\.|"")*"|\\.|[^"\\(),])*)(?P<end>[,)])', re.DOTALL
)
_RECORD_PART = re.compile(r'"((?:[^"\\]|\\.|"")*)"|\\(.)|([^"\\])', re.DOTALL)


def split_record(text: str) -> list[str | None]:
    """The fields of a record's text, unquoted."""
    body = text.strip(_BLANKS)
    if not body.startswith("("):
        raise _malformed("record", text)
    items: list[str | None] = []
    at, end = 1, ","
    while end == ",":
        match = _RECORD_TOKEN.match(body, at)
        if match is None:
            raise _malformed("record", text)
        items.append(_record_value(match["item"]))
        at, end = match.end(), match["end"]
    if at != len(body):
        raise _malformed("record", text)
    return items


def _record_value(item: str) -> str | None:
    if not item:
        return None

    def part(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _unescape(match[1].replace('""', '\\"'))
        return match[2] if match[2] is not None else match[3]

    return _RECORD_PART.sub(part, item)


def _malformed(kind: str, text: str) -> InvalidValue:
    return InvalidValue(f'malformed {kind} literal: "{text[:100]}"')
