"""jsonb documents, changed at a path: set, inserted into, deleted from; and shown with indents.

A path is an array of texts: keys of objects, and numbers of the items of arrays, from the end when
they are negative. A step into what is not there, or into a scalar, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument, InvalidText
from noonmark.rows import types as t
from noonmark.sql.functions.errors import NoSuchSubscript, NullRefused
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.jsonb import as_text, descend, jsonb_of, parse

Path = tuple[str | None, ...]
Change = Callable[[Any, Any], None]


def _changed(document: str, path: Path, what: str, last: Change) -> str:
    """The document after `last` has acted on the container at the end of the path."""
    data = parse(document)
    if not isinstance(data, dict | list):
        raise InvalidArgument(f"cannot {what} path in scalar")
    if not path:
        return document
    node = data
    for at, step in enumerate(path, 1):
        if step is None:
            raise NullRefused(f"path element at position {at} is null")
        if what == "delete" and not node:
            break  # nothing is in it, under whatever name
        key: Any = _index(step, at) if isinstance(node, list) else step
        if at == len(path):
            last(node, key)
            break
        try:
            node = node[key]
        except (KeyError, IndexError):
            break
        if not isinstance(node, dict | list):
            break
    return jsonb_of(data)


def _index(step: str, at: int) -> int:
    try:
        return int(step)
    except ValueError:
        raise InvalidText(f'path element at position {at} is not an integer: "{step}"') from None


def _set(document: str, path: Path, value: str, create: bool = True) -> str:
    if not create and document in ("{}", "[]"):
        return document
    new = parse(value)

    def last(node: Any, key: Any) -> None:
        if isinstance(node, dict):
            if create or key in node:
                node[key] = new
        elif -len(node) <= key < len(node):
            node[key] = new
        elif create:
            node.insert(0 if key < 0 else len(node), new)

    return _changed(document, path, "set", last)


def _insert(document: str, path: Path, value: str, after: bool = False) -> str:
    new = parse(value)

    def last(node: Any, key: Any) -> None:
        if isinstance(node, dict):
            if key in node:
                raise InvalidArgument("cannot replace existing key")
            node[key] = new
        elif -len(node) <= key < len(node):
            node.insert(key % len(node) + after, new)
        else:
            node.insert(0 if key < 0 else len(node), new)

    return _changed(document, path, "set", last)


def _delete(document: str, path: Path) -> str:
    def last(node: Any, key: Any) -> None:
        if isinstance(node, dict):
            node.pop(key, None)
        elif -len(node) <= key < len(node):
            del node[key]

    return _changed(document, path, "delete", last)


_TREATMENTS = (
    'null_value_treatment must be "delete_key", "return_target", "use_json_null", '
    'or "raise_exception"'
)


def _set_lax(
    document: str | None,
    path: Path | None,
    value: str | None,
    create: bool | None = True,
    treatment: str | None = "use_json_null",
) -> str | None:
    """A value set at a path; what NULL does there, it is told."""
    if document is None or path is None or create is None:
        return None
    if treatment is None:
        raise InvalidArgument(_TREATMENTS)
    if value is not None:
        return _set(document, path, value, create)
    match treatment:
        case "use_json_null":
            return _set(document, path, "null", create)
        case "delete_key":
            return _delete(document, path)
        case "return_target":
            return document
        case "raise_exception":
            raise NullRefused("JSON value must not be null")
    raise InvalidArgument(_TREATMENTS)


def _object(items: tuple[str | None, ...]) -> str:
    """Keys and values by turns, all of them texts."""
    if len(items) % 2:
        raise NoSuchSubscript("array must have even number of elements")
    return _object_of(items[::2], items[1::2])


def _object_of(keys: tuple[str | None, ...], values: tuple[str | None, ...]) -> str:
    if bool(keys) != bool(values):
        raise NoSuchSubscript("wrong number of array subscripts")
    if len(keys) != len(values):
        raise NoSuchSubscript("mismatched array dimensions")
    if None in keys:
        raise NullRefused("null value not allowed for object key")
    return jsonb_of(dict(zip(keys, values, strict=True)))


def _pretty(document: str) -> str:
    return _shown(parse(document), "\n")


def _shown(data: Any, line: str) -> str:
    inner = f"{line}    "
    if isinstance(data, dict):
        items = [f"{inner}{jsonb_of(k)}: {_shown(x, inner)}" for k, x in data.items()]
        return "{" + ",".join(items) + line + "}"
    if isinstance(data, list):
        return "[" + ",".join(f"{inner}{_shown(x, inner)}" for x in data) + line + "]"
    return jsonb_of(data)


def _extract(document: str | None, *path: str | None) -> str | None:
    """What is at a path; a step that is NULL leads nowhere."""
    return None if document is None else descend(document, path)


_J, _B = t.Jsonb, t.Boolean
_STEPS = (_J, t.Text)

TABLE = (
    Function("#-", (_J, t.Array), _J(), _delete, fallible=True),
    Function("jsonb_set", (_J, t.Array, _J), _J(), _set, fallible=True),
    Function("jsonb_set", (_J, t.Array, _J, _B), _J(), _set, fallible=True),
    Function("jsonb_insert", (_J, t.Array, _J), _J(), _insert, fallible=True),
    Function("jsonb_insert", (_J, t.Array, _J, _B), _J(), _insert, fallible=True),
    *(
        Function(
            "jsonb_set_lax",
            (_J, t.Array, _J, *more),
            _J(),
            _set_lax,
            strict=False,
            gives_null=True,
            fallible=True,
        )
        for more in ((), (_B,), (_B, t.Text))
    ),
    Function("jsonb_object", (t.Array,), _J(), _object, fallible=True),
    Function("jsonb_object", (t.Array, t.Array), _J(), _object_of, fallible=True),
    Function("jsonb_pretty", (_J,), t.Text(), _pretty),
    Function(
        "jsonb_extract_path",
        _STEPS,
        _J(),
        _extract,
        strict=False,
        null_by_first=True,
        gives_null=True,
        variadic=True,
    ),
    Function(
        "jsonb_extract_path_text",
        _STEPS,
        t.Text(),
        lambda a, *path: None if (found := _extract(a, *path)) is None else as_text(parse(found)),
        strict=False,
        null_by_first=True,
        gives_null=True,
        variadic=True,
    ),
)
