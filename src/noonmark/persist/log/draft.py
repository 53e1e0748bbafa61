"""A state being changed by one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from noonmark.persist.log.command import Command
from noonmark.persist.log.state import Batch, Collection, Garbage, State


@dataclass
class Draft:
    """A state being changed: the maps are copied when they are first written to."""

    state: State
    now_ms: int
    changed: dict[int, Collection | None] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """A field as changed so far."""
        return self.changes.get(name, getattr(self.state, name))

    def own(self, name: str) -> dict[Any, Any]:
        """A map of the state, as a copy that may be written to."""
        if name not in self.changes:
            self.changes[name] = dict(getattr(self.state, name))
        mapping: dict[Any, Any] = self.changes[name]
        return mapping

    def collection(self, ref: int) -> Collection:
        """A collection as changed so far."""
        if ref in self.changed:
            changed = self.changed[ref]
            return changed if changed is not None else State().collection(ref)
        return self.state.collection(ref)

    def view(self) -> State:
        """The state as changed so far."""
        if not self.changed and not self.changes:
            return self.state
        changes = dict(self.changes)
        if self.changed:
            collections = dict(self.state.collections)
            for ref, collection in self.changed.items():
                if collection is None:
                    collections.pop(ref, None)
                else:
                    collections[ref] = collection
            changes["collections"] = collections
        return msgspec.structs.replace(self.state, **changes)

    def update(self, collection: Collection, **changes: Any) -> None:
        """Replace fields of one collection."""
        self.changed[collection.id] = msgspec.structs.replace(collection, **changes)

    def discard(self, collection: int, batches: Iterable[Batch]) -> None:
        """The parts of these batches leave the state."""
        fresh = tuple(
            Garbage(part.key, part.bytes, collection, self.state.seqno + 1, self.now_ms)
            for batch in batches
            for part in batch.parts
        )
        if fresh:
            self.changes["garbage"] = self.get("garbage") + fresh


#: What each kind of command does to a draft; it raises before it changes anything.
Handlers = dict[type[Command], Callable[[Draft, Any], None]]
