"""ALTER TABLE that changes what is stored: another collection, with the rows as they are then.

A column that goes, or has another name or type, a primary key that comes or goes: the table is made
anew under its own name, in the transaction of the statement, and has the rows of the old one as
they were read. So it is one commit, it can be rolled back, and it is refused where others wrote in
between (`SerializationFailure`; a statement by itself is run again).

What belongs to the table goes with it: sequences, foreign keys, rights, comments. Its indexes are
made anew beside it; one on a column that goes, goes. Views that read the table would read what is
gone: with one of them the statement is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.ddl.index_items import columns_of, over
from noonmark.adapter.statement.dml.read import write
from noonmark.adapter.table.constraints import foreigns_of
from noonmark.adapter.table.expressions import renamed
from noonmark.errors import DependentObjects

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]


def refuse_readers(session: AdapterSession, item: Item, verb: str) -> None:
    """Refuse a change of what views of a table read.

    Raises:
        DependentObjects: there is one; says which.
    """
    catalog = session.store.catalog
    found = [
        each
        for each in catalog.dependents([item.number])
        if each.part_of != item.number and not _is_index_of(each, item)
    ]
    if found:
        raise DependentObjects(
            f"cannot {verb} of table {item.name} because other objects depend on it",
            detail="\n".join(f"{each} reads table {item.name}" for each in reversed(found)),
            hint="Drop them first, and make them again afterwards.",
        )


async def rewritten(
    session: AdapterSession,
    old: Item,
    new: Item,
    rows: dict[Row, int],
    change: Callable[[Row], Row],
) -> Item:
    """Put another table in the place of one; the caller has the catalog's turn.

    Args:
        session: in a transaction, implicit or not.
        old: the table.
        new: the same as it is to be.
        rows: its rows.
        change: what becomes of a row.
    """
    store, transaction = session.store, current(session)
    assert transaction is not None, "a table is rewritten in a transaction"
    catalog = store.catalog
    number = catalog.next_number
    # A name of its own until COMMIT: what was read of the old one is then still compared.
    made = replace(new, number=number, stored_as=f"{old.collection.partition(chr(0))[0]}\0{number}")
    made = _pointed(made, old.number, number)
    owned = [replace(each, part_of=number) for each in catalog.parts_of(old.number)]
    others = [
        _pointed(each, old.number, number)
        for each in catalog.items("table")
        if each.number != old.number and any(f.parent == old.number for f in foreigns_of(each))
    ]
    indexes = [each for each in catalog.items("index") if _is_index_of(each, old)]
    again = _indexes_again(catalog, indexes, old, made)
    gone = [old.number, *(each.number for each in indexes)]
    await store.change([made, *owned, *others, *again], gone)
    transaction.forget([old.collection])
    made = store.catalog.by_number[number]
    each = (row for row, count in rows.items() for _ in range(count))
    await write(session, {made.collection: [(change(row), 1) for row in each]})
    return made


def _is_index_of(item: Item, table: Item) -> bool:
    return item.kind == "index" and item.definition.get("on") == table.number


def _indexes_again(catalog: Catalog, indexes: Sequence[Item], old: Item, new: Item) -> list[Item]:
    """The indexes of a table over what is in its place; without those whose column is gone."""
    before, after = old.schema.names, new.schema.names
    # A column that is renamed stays where it was.
    moved = dict(zip(before, after, strict=True)) if len(before) == len(after) else {}
    found: list[Item] = []
    for each in indexes:
        again = _moved(each, moved)
        if not columns_of(again) <= set(after):
            continue
        number = new.number + 1 + len(found)
        stored_as = f"{each.collection.partition(chr(0))[0]}\0{number}"
        found.append(over(catalog, replace(again, number=number, stored_as=stored_as), new))
    return found


def _moved(index: Item, moved: Mapping[str, str]) -> Item:
    """The index after columns have other names."""
    has = index.definition
    if "elements" not in has:
        return replace(index, key=tuple(moved.get(name, name) for name in index.key))
    elements, where = [list(each) for each in has["elements"]], has["where"]
    for old, new in moved.items():
        if old != new:
            elements = [[new if name == old else name, renamed(text, old, new)]
                        for name, text in elements]  # fmt: skip
            where = where and renamed(where, old, new)
    return replace(index, definition={**has, "elements": elements, "where": where})


def _pointed(item: Item, before: int, after: int) -> Item:
    """A table whose foreign keys refer to another number."""
    if "foreigns" not in item.definition:
        return item
    moved = [
        replace(each, parent=after if each.parent == before else each.parent).stored()
        for each in foreigns_of(item)
    ]
    return replace(item, definition={**item.definition, "foreigns": moved})
