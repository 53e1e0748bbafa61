"""What sources have in common: partitions by number, offsets of one record, and clients that stay.

A source is a description that pickles; the clients that its process has opened for it are not part
of it (`Live`). They are made again where they are needed, and let go with the process's own source.
What it asks of upstream on the driver, it asks by its peer (`noonmark.peer`).

Where it runs: as `noonmark.source.contract` says.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from noonmark.peer import Peer
from noonmark.source.contract import PartitionKind


class Numbered:
    """A source whose partitions are numbers, and which hears of every acknowledged write."""

    @property
    def partition_kind(self) -> PartitionKind:
        """See `Source.partition_kind`."""
        return "number"

    @property
    def offset_unit(self) -> int:
        """See `Source.offset_unit`."""
        return 1

    @property
    def latest_is_linearizable(self) -> bool:
        """See `Source.latest_is_linearizable`; the source's own module says why."""
        return True


@dataclass
class Live(ABC):
    """What a process holds of upstream: never pickled, never compared. One thread at a time."""

    mutex: threading.Lock = field(default_factory=threading.Lock, kw_only=True)
    peer: Peer = field(default_factory=lambda: Peer("source"), kw_only=True)

    def __del__(self) -> None:
        self.let_go()

    @abstractmethod
    def let_go(self) -> None:
        """Close it all."""


class Holding:
    """A frozen dataclass with a field `_live`, made by its default factory."""

    _live: Any

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name in self._lasting()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields: dict[str, Any] = vars(type(self))["__dataclass_fields__"]
        self.__dict__.update(state, _live=fields["_live"].default_factory())

    def _lasting(self) -> list[str]:
        return [name for name in vars(type(self))["__dataclass_fields__"] if name != "_live"]

    def close(self) -> None:
        """Let go of what this process holds; what upstream has of ours stays."""
        with self._live.mutex:
            self._live.let_go()

    def leave(self) -> Future[Any]:
        """See `HasPeer.leave`."""
        peer: Peer = self._live.peer
        return peer.leave(self.close)
