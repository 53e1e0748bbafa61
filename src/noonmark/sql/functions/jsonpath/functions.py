"""jsonb_path_*: what a SQL/JSON path says of a document.

A path is of type ``jsonpath``; the trees of those that were asked for last are kept. ``_tz`` allows
times to be compared across zones; a path has no times here (``.datetime()`` is refused), so each
of these is its neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from noonmark.errors import InvalidArgument, NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.coded.jsonpath import Jsonpath
from noonmark.rows.coded.path_syntax import Node, Path
from noonmark.rows.coded.path_syntax import parse as parse_path
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.jsonb import jsonb_of, parse
from noonmark.sql.functions.jsonpath import evaluate
from noonmark.sql.functions.jsonpath.evaluate import NotOne


@lru_cache(maxsize=256)
def _read(path: bytes) -> Path:
    """The tree of a path; a regular expression in it is read when it is asked for."""
    return parse_path(path.decode())


def _check(path: Path) -> None:
    """Read the regular expressions of a path.

    Raises:
        InvalidPattern: one of them is none.
    """
    stack: list[Any] = [path.root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack += node
        elif isinstance(node, Node):
            if node.kind == "like_regex":
                evaluate.regex_of(*node.value)
            elif node.kind == "[]":
                stack += node.value
            stack += (*node.operands, *node.accessors)


Jsonpath.check = _check


def _variables(document: str) -> dict[str, Any]:
    found = parse(document)
    if not isinstance(found, dict):
        raise InvalidArgument(
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    return found


def _items(document: str, path: bytes, variables: str, silent: bool) -> Iterator[Any]:
    """The items of a path; with `silent`, those before its error."""
    found = evaluate.evaluate(_read(path), parse(document), _variables(variables))
    try:
        yield from found
    except NoonmarkError as error:
        if not (silent and evaluate.suppressed(error)):
            raise


def _exists(document: str, path: bytes, variables: str = "{}", silent: bool = False) -> bool | None:
    read = _read(path)
    try:
        return evaluate.exists(read, parse(document), _variables(variables))
    except NoonmarkError as error:
        if not (silent and evaluate.suppressed(error)):
            raise
        return None


def _match(document: str, path: bytes, variables: str = "{}", silent: bool = False) -> bool | None:
    found = list(_items(document, path, variables, silent))
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if silent:
        return None
    raise NotOne("single boolean result is expected")


def _rows(
    document: str, path: bytes, variables: str = "{}", silent: bool = False
) -> Iterator[tuple[str]]:
    # A document in which nothing is found before an error gives none of its items.
    return ((jsonb_of(each),) for each in list(_items(document, path, variables, silent)))


def _array(document: str, path: bytes, variables: str = "{}", silent: bool = False) -> str:
    return jsonb_of(list(_items(document, path, variables, silent)))


def _first(document: str, path: bytes, variables: str = "{}", silent: bool = False) -> str | None:
    for each in list(_items(document, path, variables, silent)):
        return jsonb_of(each)
    return None


#: What one item takes, of one character of a path, as the length of a text that takes as long.
_STEP_SIZE = 300
_DEGREE_MAX = 8


def _size(document: str, path: bytes, *_: Any) -> float:
    """What a path is to follow: each of its steps may be asked of each item that the last gave."""
    if b"like_regex" in path:
        return math.inf
    items = 1.0 + sum(map(document.count, ",[{"))
    degree = sum(map(path.count, (b"*", b"$", b"@", b" to ")))
    return _STEP_SIZE * len(path) * items ** min(degree, _DEGREE_MAX)


_J, _X, _B = t.Jsonb, Jsonpath, t.Boolean
_PARAMETERS = ((_J, _X), (_J, _X, _J), (_J, _X, _J, _B))


def _each(
    name: str, result: t.SqlType, meaning: Callable[..., Any], *, gives_null: bool = False
) -> list[Function]:
    return [
        Function(
            f"{name}{suffix}",
            parameters,
            result,
            meaning,
            gives_null=gives_null,
            fallible=True,
            size=_size,
        )
        for suffix in ("", "_tz")
        for parameters in _PARAMETERS
    ]


TABLE = (
    *_each("jsonb_path_exists", t.Boolean(), _exists, gives_null=True),
    *_each("jsonb_path_match", t.Boolean(), _match, gives_null=True),
    *_each("jsonb_path_query_array", t.Jsonb(), _array),
    *_each("jsonb_path_query_first", t.Jsonb(), _first, gives_null=True),
    Function("@?", (_J, _X), _B(), lambda d, p: _exists(d, p, "{}", True), gives_null=True,
             fallible=True, size=_size),
    Function("@@", (_J, _X), _B(), lambda d, p: _match(d, p, "{}", True), gives_null=True,
             fallible=True, size=_size),
)  # fmt: skip

#: jsonb_path_query gives rows.
ROWS = tuple(_each("jsonb_path_query", t.Jsonb(), _rows))
