"""Collections that nobody sees: what a source reads beside what it shows.

They are made by one process, and dropped by it, in the commit that makes their contents visible or
when that fails. What a process did not live to drop, the next one does.

Where it runs: a thread; it waits for commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noonmark.adapter.catalog import Catalog, Item
from noonmark.persist.client import Client
from noonmark.rows.schema import Schema
from noonmark.storage.description import CollectionDescription, description_of
from noonmark.storage.transaction import creation

KIND = "staging"

#: A collection to be made: its name, its columns, its key.
Wanted = tuple[str, Schema, tuple[str, ...]]


def staging_name(client: Client, item: Item) -> str:
    """A name for what is read beside a source."""
    return f"staging_{item.number}_{client.clock.fresh_id()}"


def create(client: Client, item: Item, wanted: Sequence[Wanted], start: int) -> None:
    """Make collections beside a source, all from the same time on; blocks."""
    details = {"source": item.number, "epoch": client.parts.epoch}
    made = []
    for name, schema, key in wanted:
        about = CollectionDescription(schema, key, KIND, details)
        made.append(creation(name, about, start))
    client.submit(tuple(made)).result()


def forget(client: Client, names: Iterable[str]) -> None:
    """Drop them, as far as they are there; blocks."""
    for name in names:
        if name in client.state.names:
            client.drop(name).result()


def drop_orphans(client: Client, catalog: Catalog, item: Item) -> None:
    """Drop what an earlier process read beside a source and did not live to commit; blocks."""
    known = {
        name for p in item.definition.get("pending", ()) for name in (p["staging"], p["errors"])
    }
    for name in [name for name in client.state.names if name.startswith(f"{KIND}_")]:
        found = client.state.collection(name)
        if not found.annotation or name in known or catalog.of_collection(name) is not None:
            continue
        about = description_of(found)
        is_ours = about.kind == KIND and about.details.get("source") == item.number
        if is_ours and about.details.get("epoch") != client.parts.epoch:
            client.drop(name).result()
