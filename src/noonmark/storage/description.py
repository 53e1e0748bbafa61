"""What a collection is, as Storage remembers it: kept in the collection's annotation."""

from __future__ import annotations

from typing import Any

import msgspec

from noonmark.errors import UnknownCollection
from noonmark.persist.log.state import Collection
from noonmark.rows.schema import Schema


class _Stored(msgspec.Struct, frozen=True):
    kind: str
    details: dict[str, Any]


class CollectionDescription(msgspec.Struct, frozen=True):
    """The definition that `create` binds to an id.

    Attributes:
        schema: the columns of its rows.
        key: the columns that its parts are sorted by.
        kind: what maintains it: "table", "source", "remap", "errors", "view", ...
        details: whatever that maintainer has to remember, as plain data.
    """

    schema: Schema
    key: tuple[str, ...] = ()
    kind: str = "table"
    details: dict[str, Any] = {}

    def annotation(self) -> bytes:
        """What persist keeps beside the schema and key, which it knows itself."""
        return msgspec.msgpack.encode(_Stored(self.kind, self.details))


def description_of(collection: Collection) -> CollectionDescription:
    """The description that a collection was created with, under its newest schema.

    Raises:
        UnknownCollection: it was made without Storage, which knows nothing of it.
    """
    if not collection.annotation:
        raise UnknownCollection(
            f'collection "{collection.name}" was not created by Storage',
            hint="Read and write it with persist, or create it with Storage.create.",
            collection=collection.name,
        )
    stored = msgspec.msgpack.decode(collection.annotation, type=_Stored)
    return CollectionDescription(collection.schema, collection.key, stored.kind, stored.details)
