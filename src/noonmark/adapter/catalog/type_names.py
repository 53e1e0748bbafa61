"""How a statement finds the types that somebody made, by their names.

Naming a type takes USAGE on its schema. A column of a type takes USAGE on the type as well, as in
PostgreSQL; an expression does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.user_types import Types, type_of
from noonmark.rows import types as t
from noonmark.rows.domain import Domain
from noonmark.sql.dialect import parse_scalar, position_of
from noonmark.sql.lexer import tokens_of
from noonmark.sql.plan.form import written_type


class TypeNames:
    """The types of users by name: looked up, or as a kept text means them; remembers them."""

    def __init__(self, access: Access | None, known: Types | None = None) -> None:
        self._access = access
        self._known = known or {}
        self.used: dict[str, Item] = {}

    def __call__(self, parts: Sequence[str]) -> t.SqlType | None:
        """The type of that name, if somebody made one."""
        written = spelled(parts)
        found = self._known.get(written)
        if found is not None or self._access is None:
            return found
        item = self._access.find(tuple(parts))
        if item is None or item.kind != "type":
            return None
        self.used[written] = item
        return type_of(item)

    def pins(self) -> dict[str, str]:
        """What every name stands for, to be remembered."""
        return {written: item.definition["uid"] for written, item in self.used.items()}


#: Where there are none.
NO_TYPES = TypeNames(None)


def spelled(parts: Sequence[str]) -> str:
    """A name as it is remembered."""
    return ".".join(map(t.quote_name, parts))


def remembering(access: Access, table: Item) -> Item:
    """A table that also knows which types its expressions name: those found first stay."""
    defaults = table.definition.get("defaults", {}).values()
    computed = (text for text, _ in table.definition.get("generated", {}).values())
    checks = (text for _, text, _ in table.definition.get("checks", ()))
    indexed = [more[0] for _, _, _, _, *more in table.definition.get("uniques", ()) if more]
    keys = [text for elements, where, _ in indexed for text in (*elements, where) if text]
    texts = [*defaults, *computed, *checks, *keys]
    before: Mapping[str, str] = table.definition.get("types", {})
    names = TypeNames(access, table.types)
    for node in (node for text in texts for node in parse_scalar(text).walk()):
        parts = written_type(node)
        if parts is not None and spelled(parts) not in before:
            names(parts)
    if not names.used:
        return table
    types = {**table.types, **{written: type_of(item) for written, item in names.used.items()}}
    definition = {**table.definition, "types": {**before, **names.pins()}}
    return replace(table, definition=definition, types=types)


def type_edits(
    catalog: Catalog, owner: Item, text: str, tree: exp.Expr, is_near: Callable[[Item], bool]
) -> Iterator[tuple[int, int, str]]:
    """What stands where in a kept text, so that its types have the names of now.

    Args:
        catalog: where they are called something now.
        owner: whose text it is.
        text: the text.
        tree: its syntax tree.
        is_near: whether a type is found without its schema.
    """
    if not owner.types:
        return
    ends = {token.start: token.end for token in tokens_of(text)}
    for node in tree.walk():
        parts = written_type(node)
        made = None if parts is None else owner.types.get(spelled(parts))
        if parts is None or not isinstance(made, t.Enum | Domain):
            continue
        item = catalog.by_number[made.number]
        kind = node.args["kind"]
        start = position_of(kind)
        last = kind.expression if isinstance(kind, exp.Dot) else kind
        name = t.quote_name(item.name)
        new = name if is_near(item) else f"{t.quote_name(item.schema_name)}.{name}"
        if start is not None:
            yield start - 1, ends[last.meta["start"]], new


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with something else in some places."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def scalar_now(catalog: Catalog, owner: Item, text: str, path: Sequence[str]) -> str:
    """An expression of a table with the names that its types have now."""
    if not owner.types:
        return text
    tree = parse_scalar(text)
    edits = type_edits(catalog, owner, text, tree, lambda item: item.schema_name in path)
    return edited(text, edits)
