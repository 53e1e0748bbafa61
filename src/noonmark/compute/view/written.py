"""Outputs that exist already: a view that writes into a collection that was made for it.

`maintain_view` takes a write capability for such a collection. From the later of that capability's
frontier and the view's first time on, the collection is the view; before that time it stays what it
was. Law: what is written at the first time is the view at that time less what was there before, so
at every time from then on the collection holds the view and nothing else.

The capability is given to Compute, and there must be no other: the collections of a view move
together. When the view is dropped the collection stays, as it is then, and may be written again.

Its since follows the capabilities of its readers, as for every collection that Storage made; the
view has one of its own there, which keeps what it is to retain.

Where it runs: driver.
"""

from __future__ import annotations

from typing import Any

from noonmark.errors import DatatypeMismatch, UsageError
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Collection, State
from noonmark.rows.schema import Schema
from noonmark.storage import WriteCapability
from noonmark.storage.description import CollectionDescription, description_of
from noonmark.storage.transaction import transfer

#: What the description of such a collection remembers: what it was before.
WAS = "was"


def check_output(state: State, schema: Schema, write: WriteCapability) -> Collection:
    """The collection that a view of this schema is to write into.

    Raises:
        DatatypeMismatch: its columns are others.
        UsageError: others may write to it too, or its contents cannot be read, and so not replaced.
    """
    found = state.collection(write.id)
    own = [(each.name, each.type) for each in found.schema]
    if own != [(each.name, each.type) for each in schema] or any(
        made.nullable and not there.nullable
        for made, there in zip(schema, found.schema, strict=True)
    ):
        raise DatatypeMismatch(
            f'the view does not fit into "{write.id}"',
            detail=f"The view has ({_shown(schema)}), the collection ({_shown(found.schema)}).",
            hint="Select those columns, in that order, with casts where they differ.",
        )
    others = [h for h in state.holds.values() if h.collection == found.id and h.writes]
    if any(hold.id != write.token for hold in others):
        raise UsageError(
            f'"{write.id}" is written by others, too',
            hint="Drop their write capabilities: one view writes a collection alone.",
        )
    if found.batches and found.since.at_or_beyond(found.upper):
        raise UsageError(
            f'the contents of "{write.id}" cannot be read, and so not be replaced',
            hint="Acquire a read capability before its since reaches its upper.",
        )
    return found


def _shown(schema: Schema) -> str:
    return ", ".join(map(str, schema))


def takeover(
    client: Client, write: WriteCapability, details: dict[str, Any], as_of: int
) -> c.Transaction:
    """What makes a collection the output of a view that begins at a time."""
    found = client.state.collection(write.id)
    was = description_of(found)
    before = {"kind": was.kind, "details": was.details}
    description = CollectionDescription(found.schema, found.key, "view", {**details, WAS: before})
    described = c.Annotate(found.id, description.annotation())
    return (*transfer(client, write, as_of), described)


def held_from(found: Collection, as_of: int) -> int:
    """From when on the output is held: what it was is read once more, when the view begins."""
    upper = found.upper.only()
    return upper - 1 if found.batches and upper else as_of


def handed_back(client: Client, name: str) -> c.Annotate:
    """What makes it a collection again that anybody may write."""
    found = client.state.collection(name)
    was = description_of(found).details[WAS]
    description = CollectionDescription(found.schema, found.key, was["kind"], was["details"])
    return c.Annotate(found.id, description.annotation())
