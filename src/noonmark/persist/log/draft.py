"""A state being changed by one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from noonmark.persist.log.command import Command
from noonmark.persist.log.state import Batch, Collection, Garbage, Hold, State


@dataclass
class Draft:
    """A state being changed: the maps are copied when they are first written to."""

    state: State
    now_ms: int
    #: Whether the transaction is in the log: what an earlier version let pass has happened.
    is_committed: bool = False
    changed: dict[int, Collection | None] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    #: The holds by what they are on, until one changes: a transaction may touch every collection.
    _holds: dict[int, list[Hold]] | None = None

    def get(self, name: str) -> Any:
        """A field as changed so far."""
        return self.changes.get(name, getattr(self.state, name))

    def own(self, name: str) -> dict[Any, Any]:
        """A map of the state, as a copy that may be written to."""
        if name == "holds":
            self._holds = None
        if name not in self.changes:
            self.changes[name] = dict(getattr(self.state, name))
        mapping: dict[Any, Any] = self.changes[name]
        return mapping

    def holds_on(self, ref: int) -> list[Hold]:
        """The holds on a collection as changed so far."""
        if self._holds is None:
            self._holds = {}
            for hold in self.get("holds").values():
                self._holds.setdefault(hold.collection, []).append(hold)
        return self._holds.get(ref, [])

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
