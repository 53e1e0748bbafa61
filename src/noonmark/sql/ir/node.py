"""What all nodes of a plan share: they are values, and their parts can be walked and replaced.

Law: ``rebuild(n, f)`` with the identity for f equals n; ``children(n)`` are the nodes that
``rebuild`` hands to f, in the same order.

A node is a frozen dataclass. Its children are the nodes that its fields hold, also inside tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from noonmark.loops import WORKING
from noonmark.sql.turns import WAITING, pass_on

N = TypeVar("N", bound="Node")


@dataclass(frozen=True, slots=True)
class Node:
    """The base of scalars, relations and the small parts between them."""


#: The metadata of a field whose value has no nodes in it: it is not walked, however long it is.
VALUE = {"is_value": True}

_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _field_names(kind: type[Node]) -> tuple[str, ...]:
    if kind not in _FIELDS:
        own = [field for field in fields(kind) if field.init and field.metadata != VALUE]
        _FIELDS[kind] = tuple(field.name for field in own)
    return _FIELDS[kind]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below."""
    for name in _field_names(type(node)):
        yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, from the top."""
    stack = [node]
    while stack:
        if WAITING or WORKING:
            pass_on()
        each = stack.pop()
        yield each
        stack += reversed(list(children(each)))


def walk_once(node: Node) -> Iterator[Node]:
    """As `walk`, but what several nodes share is there once: plans share subplans."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        each = stack.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            stack += reversed(list(children(each)))


def rebuild(node: N, change: Callable[[Any], Node]) -> N:
    """The node with every child replaced; the same object when none changed."""
    if WAITING or WORKING:
        pass_on()
    changed: dict[str, Any] = {}
    for name in _field_names(type(node)):
        old = getattr(node, name)
        new = _replace(old, change)
        if new is not old:
            changed[name] = new
    return replace(node, **changed) if changed else node


def _replace(value: Any, change: Callable[[Any], Node]) -> Any:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, tuple):
        items = tuple(_replace(item, change) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
