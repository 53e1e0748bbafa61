"""jsonb documents, changed at a path: set, inserted into, deleted from; and shown with indents.

A path is an array of texts: keys of objects, and numbers of the items of arrays, from the end when
they are negative. A step into what is not there, or into a scalar, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noonmark.errors import InvalidArgument, InvalidText
from noonmark.rows import types as t
from noonmark.sql.functions.errors import NullRefused
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
    Function("jsonb_pretty", (_J,), t.Text(), _pretty),
    Function(
        "jsonb_extract_path",
        _STEPS,
        _J(),
        _extract,
        strict=False,
        gives_null=True,
        variadic=True,
    ),
    Function(
        "jsonb_extract_path_text",
        _STEPS,
        t.Text(),
        lambda a, *path: None if (found := _extract(a, *path)) is None else as_text(parse(found)),
        strict=False,
        gives_null=True,
        variadic=True,
    ),
)
