"""All items, and how a name finds one.

A catalog is immutable: a statement is planned against one catalog, whatever others do meanwhile.

Law (names): within one schema no two items have the same name; roles and schemas have names of
their own. Law (needs): every number in `Item.needs` and `Item.part_of` is in the catalog, and an
item needs only items with smaller numbers or of its own source: so dependents can be dropped first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from noonmark.adapter.catalog.item import (
    BUILT_IN,
    DATABASE,
    GLOBAL,
    PREDEFINED,
    PUBLIC,
    TEMPORARY_PREFIX,
    Item,
    Kind,
)
from noonmark.adapter.catalog.user_types import Made, bound, is_domain, type_of, types_of
from noonmark.errors import DuplicateObject, NameTaken, UndefinedObject, UndefinedTable

#: Where an unqualified name is looked for, in this order.
SEARCH_PATH = (PUBLIC, "pg_catalog", "noonmark", "mz_catalog", "mz_internal")


@dataclass(frozen=True)
class Catalog:
    """See the module. `system` items are those that Noonmark brings itself."""

    by_number: MappingProxyType[int, Item] = field(default_factory=lambda: MappingProxyType({}))
    by_name: MappingProxyType[tuple[str, str], Item] = field(
        default_factory=lambda: MappingProxyType({})
    )
    next_number: int = 1

    @classmethod
    def of(cls, items: Iterable[Item], next_number: int = 1) -> Catalog:
        """The catalog of these items."""
        numbered = _bound({item.number: item for item in items})
        named: dict[tuple[str, str], Item] = {}
        for item in numbered.values():
            if _name(item) in named:
                raise name_taken(item, named[_name(item)])
            named[_name(item)] = item
        top = max([next_number, *map(_next, numbered.values())])
        return cls(MappingProxyType(numbered), MappingProxyType(named), top)

    def changed(self, added: Sequence[Item] = (), removed: Iterable[int] = ()) -> Catalog:
        """This catalog without some items, and with others: new ones, or changed ones."""
        gone = set(removed)
        items = {n: item for n, item in self.by_number.items() if n not in gone}
        items.update({item.number: item for item in added})
        return Catalog.of(items.values(), self.next_number)

    # -- looking up ----------------------------------------------------------------------------

    def items(self, *kinds: Kind) -> Iterator[Item]:
        """Every item of these kinds, or of all, in the order of their numbers."""
        for item in self._ordered:
            if not kinds or item.kind in kinds:
                yield item

    @cached_property
    def _ordered(self) -> tuple[Item, ...]:
        return tuple(self.by_number[number] for number in sorted(self.by_number))

    @cached_property
    def referring(self) -> tuple[Item, ...]:
        """The tables that have foreign keys."""
        return tuple(item for item in self.items("table") if item.definition.get("foreigns"))

    def find(self, parts: Sequence[str], path: Sequence[str] = SEARCH_PATH) -> Item | None:
        """The item of that name, if there is one; a database's name in front is ignored."""
        *schema, name = parts[-2:]
        if schema == ["pg_temp"]:
            schema = [each for each in path if each.startswith(TEMPORARY_PREFIX)] or schema
        for schema_name in schema or path:
            if (item := self.by_name.get((schema_name, name))) is not None:
                return item
        return None

    def resolve(
        self,
        parts: Sequence[str],
        position: int | None = None,
        path: Sequence[str] = SEARCH_PATH,
    ) -> Item:
        """The item of that name.

        Raises:
            UndefinedTable: there is none.
        """
        item = self.find(parts, path)
        if item is None:
            raise UndefinedTable(f'relation "{".".join(parts)}" does not exist', position=position)
        return item

    def role(self, name: str) -> Item:
        """The role of that name, also one that is always there; raises `UndefinedObject`."""
        item = self.by_name.get((_ROLES, name)) or _ALWAYS.get(name)
        if item is None:
            raise UndefinedObject(f'role "{name}" does not exist')
        return item

    def roles(self) -> Mapping[str, Item]:
        """The roles that somebody made, or changed, by name."""
        return self._roles

    @cached_property
    def _roles(self) -> dict[str, Item]:
        return {item.name: item for item in self.items("role")}

    def all_roles(self) -> dict[str, Item]:
        """Every role by name: first those that are always there."""
        return {**_ALWAYS, **self._roles}

    def has_schema(self, name: str) -> bool:
        """Whether something can be made in that schema."""
        return self.schema(name) is not None

    def schema(self, name: str) -> Item | None:
        """The schema of that name; None for what is no schema of users."""
        found = self.by_name.get((_SCHEMAS, name))
        return _PUBLIC_SCHEMA if found is None and name == PUBLIC else found

    @property
    def database(self) -> Item:
        """The database itself."""
        return self.by_name.get((_DATABASES, DATABASE), _DATABASE)

    def of_collection(self, name: str) -> Item | None:
        """The item whose rows a collection has."""
        schema_name, _, last = name.rpartition(".")
        for parts in ((PUBLIC, name), (schema_name, last)):
            item = self.by_name.get(parts)
            if item is not None and item.collection == name:
                return item
        return self._stored_as.get(name)

    @cached_property
    def _stored_as(self) -> dict[str, Item]:
        items = reversed(tuple(self.by_number.values()))
        return {item.stored_as: item for item in items if item.stored_as}

    @cached_property
    def types(self) -> Mapping[str, Made]:
        """The types that somebody made, by their uids."""
        return {made.uid: made for made in map(type_of, self.items("type"))}

    # -- dependencies --------------------------------------------------------------------------

    def parts_of(self, number: int) -> list[Item]:
        """What belongs to a source and goes with it."""
        return [item for item in self.items() if item.part_of == number]

    def dependents(self, numbers: Iterable[int]) -> list[Item]:
        """Everything that needs one of these or their parts, directly or not; the last first."""
        gone = set(numbers)
        gone |= {part.number for number in list(gone) for part in self.parts_of(number)}
        own = set(gone)
        found: dict[int, Item] = {}
        grew = True
        while grew:
            grew = False
            for item in self.by_number.values():
                if item.number in gone:
                    continue
                if gone & {*item.needs, item.part_of}:
                    gone.add(item.number)
                    found[item.number] = item
                    grew = True
        return [found[number] for number in sorted(found, reverse=True) if number not in own]

    def needs(self, numbers: Iterable[int]) -> list[Item]:
        """These items and everything that they need, directly or not."""
        found: dict[int, Item] = {}
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            item = self.by_number.get(number)
            if item is not None and number not in found:
                found[number] = item
                waiting += [*item.needs, *([item.part_of] if item.part_of else [])]
        return [found[number] for number in sorted(found)]


_ROLES, _SCHEMAS, _DATABASES = "\0role", "\0schema", "\0database"
#: What is always there, with the rights that everybody has at first, as in PostgreSQL. It has no
#: number, and no row, before somebody changes them.
_ALWAYS: dict[str, Item] = {
    BUILT_IN: Item(0, "role", "", BUILT_IN, definition={"login": True, "superuser": True}),
    **{name: Item(0, "role", "", name, definition={"login": False}) for name in PREDEFINED},
}
_PUBLIC_SCHEMA = Item(0, "schema", "", PUBLIC, grants={"public": frozenset({"USAGE"})})
_DATABASE = Item(
    0,
    "database",
    "",
    DATABASE,
    grants={"public": frozenset({"CONNECT", "TEMPORARY", "USAGE"})},
)


def _bound(items: dict[int, Item]) -> dict[int, Item]:
    """The items with the types that somebody made as they are now."""
    if not any(item.kind == "type" for item in items.values()):
        return items
    found = list(types_of(items[number] for number in sorted(items)))
    types = {made.uid: made for _, made in found}
    own = {item.number: item for item, _ in found if is_domain(item)}
    return {n: own.get(n) or bound(item, types) for n, item in items.items()}


def _next(item: Item) -> int:
    """The first number behind an item's; a type and its array have one each."""
    return 0 if item.kind == "system" else item.number + (2 if item.kind == "type" else 1)


def _name(item: Item) -> tuple[str, str]:
    if item.kind in GLOBAL:
        return f"\0{item.kind}", item.name
    return item.schema_name, item.name


def name_taken(item: Item, other: Item | None = None) -> NameTaken | DuplicateObject:
    """Two items of one name; `other` is the one that has it."""
    if other is not None and other.kind == "type" and item.is_relation:
        return DuplicateObject(
            f'type "{item.name}" already exists',
            hint="A relation has an associated type of the same name, so you must use a name that "
            "doesn't conflict with any existing type.",
        )
    if item.kind in GLOBAL:
        return DuplicateObject(f'{item.kind} "{item.name}" already exists')
    if not item.is_relation and item.kind != "index":
        return DuplicateObject(f'{item.kind} "{item.name}" already exists')
    return NameTaken(f'relation "{item.name}" already exists', name=item.name)
