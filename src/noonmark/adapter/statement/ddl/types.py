"""CREATE TYPE and ALTER TYPE: enums.

A label is added at a place between its neighbours' (`rows.label`): nothing that is stored changes,
and what is in order stays so. A view whose rows depend on which labels there are (it reads text as
the type, or lists them) would have other rows without a change of its inputs: there must be none
when a label comes. A label that is renamed is another value, so while columns have the type it is
refused: UPDATE says when the rows change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import EVERYBODY
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.user_types import (
    Made,
    labels_of,
    made_types,
    named_by,
    type_of,
)
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.names import view_relation
from noonmark.adapter.statement.ddl.common import (
    Created,
    create,
    place,
)
from noonmark.adapter.statement.ddl.find import find, missing
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import (
    DuplicateObject,
    InvalidArgument,
    UniqueViolation,
    Unsupported,
    UsageError,
)
from noonmark.rows.label import Label, first_places, place_between
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.node import walk_once
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_LABEL_BYTES_MAX = 63
#: Functions whose answer depends on which labels there are.
_OF_LABELS = ("enum_first", "enum_last", "enum_range")


class InvalidName(UsageError, id="invalid_name", sqlstate="42602"):
    """A name or a label that is too long."""


async def run_create_enum(
    session: AdapterSession, statement: st.CreateEnum, _: Sequence[Any]
) -> Outcome:
    """CREATE TYPE name AS ENUM."""
    known: set[str] = set()
    for label in statement.labels:
        _check_label(label)
        if label in known:
            raise UniqueViolation(
                'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
                detail=f"Key (enumlabel)=({label}) already exists.",
                constraint="pg_enum_typid_label_index",
            )
        known.add(label)
    places = first_places(len(statement.labels))
    rows = zip(statement.labels, places, strict=True)
    definition = {
        "uid": session.database.clock.fresh_id(),
        "labels": [
            [label, where.hex(), at, float(at)] for at, (label, where) in enumerate(rows, 1)
        ],
        "last": len(places),
    }

    async def make(catalog: Catalog, number: int) -> Created:
        schema, name = place(catalog, statement.name)
        taken = catalog.by_name.get((schema, name))
        if taken is not None and taken.is_relation:
            raise DuplicateObject(f'type "{name}" already exists')
        grants = {EVERYBODY: frozenset({"USAGE"})}
        item = Item(number, "type", schema, name, definition=definition, owner=session.user,
                    grants=grants)  # fmt: skip
        return Created((item,), lambda _: ())

    done, _created = await create(session, "CREATE TYPE", statement.name, False, make)
    return done


def _check_label(label: str) -> None:
    if len(label.encode()) > _LABEL_BYTES_MAX:
        raise InvalidName(
            f'invalid enum label "{label}"',
            detail=f"Labels must be {_LABEL_BYTES_MAX} bytes or less.",
        )


def _altered(session: AdapterSession, catalog: Catalog, name: st.Name) -> Item:
    access: Access = session.access("ALTER TYPE", catalog)
    item = find(access, "type", name)
    if item is None:
        raise missing("type", name)
    access.check("object", item)
    return item


async def run_add_label(
    session: AdapterSession, statement: st.AddLabel, _: Sequence[Any]
) -> Outcome:
    """ALTER TYPE ADD VALUE."""
    store = session.store
    async with store.turn:
        item = _altered(session, store.catalog, statement.name)
        _check_label(statement.label)
        labels = labels_of(item)
        if statement.label in labels:
            told = f'enum label "{statement.label}" already exists'
            if not statement.if_not_exists:
                raise DuplicateObject(told)
            return Done("ALTER TYPE", (Notice(f"{told}, skipping", sqlstate="42710"),))
        at = len(labels)
        if statement.other is not None:
            at = _index(labels, statement.other) + (0 if statement.before else 1)
        low = labels[at - 1].place if at else None
        high = labels[at].place if at < len(labels) else None
        _refuse_readers(store.catalog, item)
        last = item.definition["last"] + 1
        rows = list(item.definition["labels"])
        order = _order(rows, at)
        rows.insert(at, [statement.label, place_between(low, high).hex(), last, order])
        if len({row[3] for row in rows}) < len(rows):
            rows = [[*row[:3], float(at)] for at, row in enumerate(rows, 1)]
        definition = {**item.definition, "labels": rows, "last": last}
        await store.change([replace(item, definition=definition)])
    return Done("ALTER TYPE")


def _order(rows: Sequence[Sequence[Any]], at: int) -> float:
    """What pg_enum has as the order of a label at that place: a real, as PostgreSQL chooses it."""
    if not rows:
        return 1.0
    if at in (0, len(rows)):
        return float(rows[0][3] - 1 if at == 0 else rows[-1][3] + 1)
    middle: float = struct.unpack("f", struct.pack("f", (rows[at - 1][3] + rows[at][3]) / 2))[0]
    return middle


def _index(labels: Sequence[Label], label: str) -> int:
    texts = [str(each) for each in labels]
    if label not in texts:
        raise InvalidArgument(f'"{label}" is not an existing enum label')
    return texts.index(label)


def _refuse_readers(catalog: Catalog, item: Item) -> None:
    """No maintained view depends on which labels there are."""
    for view in catalog.items("materialized-view", "index"):
        below = catalog.needs([view.number])
        if item not in below:
            continue
        for each in (x for x in below if x.kind in ("view", "materialized-view")):
            if _depends_on_labels(catalog, each, type_of(item)):
                raise Unsupported(
                    f"type {type_of(item)} cannot get a label: {view} reads text as the type, "
                    "or lists its labels",
                    detail="Its rows would be others, though nothing that it reads has changed.",
                    hint=f"Drop {view}, and make it again afterwards.",
                )


def _depends_on_labels(catalog: Catalog, view: Item, kind: Made) -> bool:
    for node in walk_once(view_relation(catalog, view).query.relation):
        if isinstance(node, s.Cast) and kind in made_types(node.type):
            if kind not in made_types(node.operand.type):
                return True
        elif isinstance(node, s.Call) and node.function.partition("(")[0] in _OF_LABELS:
            return True
    return False


async def run_rename_label(
    session: AdapterSession, statement: st.RenameLabel, _: Sequence[Any]
) -> Outcome:
    """ALTER TYPE RENAME VALUE."""
    store = session.store
    async with store.turn:
        catalog = store.catalog
        item = _altered(session, catalog, statement.name)
        _check_label(statement.new)
        labels = labels_of(item)
        at = _index(labels, statement.old)
        if statement.new in labels:
            raise DuplicateObject(f'enum label "{statement.new}" already exists')
        user = next(_users(catalog, item), None)
        if user is not None:
            raise Unsupported(
                f"RENAME VALUE is not supported while {user} depends on type {type_of(item)}",
                detail="A label is a part of the values that are kept.",
                hint="ADD VALUE the new label beside the old one, and UPDATE the rows.",
            )
        rows = [list(row) for row in item.definition["labels"]]
        rows[at][0] = statement.new
        definition = {**item.definition, "labels": rows}
        await store.change([replace(item, definition=definition)])
    return Done("ALTER TYPE")


def _users(catalog: Catalog, item: Item) -> Iterator[Item]:
    """What has values or names of a type."""
    kind = type_of(item)
    for each in catalog.items():
        own = any(kind in made_types(column.type) for column in each.schema.columns)
        if own or item.number in each.needs or kind in named_by(each):
            yield each


HANDLERS: Handlers = {
    st.CreateEnum: run_create_enum,
    st.AddLabel: run_add_label,
    st.RenameLabel: run_rename_label,
}
