"""Capabilities: durable rights to read or to write, known by their ids.

    ReadCapability(id, frontier)    keeps the since of `id` from advancing beyond `frontier`
    WriteCapability(id, frontier)   keeps the upper of `id` from advancing beyond `frontier`

A capability is state of the location (a hold of persist). The object here is what a user
presents: whoever has its `token` has the right, in this process or another; `to_bytes` and
`from_bytes` carry it across. The system checks it when it is exercised: one that was dropped, has
expired, or is not where it is said to be is an error, and never a wrong read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import msgspec

from noonmark.errors import CapabilityInvalid
from noonmark.persist.log.state import Frontier
from noonmark.tvc import Antichain

Self = TypeVar("Self", bound="Capability")


@dataclass(frozen=True)
class Capability:
    """What both kinds have in common.

    Attributes:
        id: the global id of the collection.
        frontier: from where on the right holds.
        token: the system-assigned identity of the capability itself.
    """

    id: str
    frontier: Frontier
    token: str

    writes: ClassVar[bool] = False

    def at(self: Self, frontier: Frontier) -> Self:
        """The same capability at another frontier, after the system confirmed it."""
        return replace(self, frontier=frontier)

    def to_bytes(self) -> bytes:
        """The capability, to hand to another process."""
        return msgspec.msgpack.encode((self.writes, self.id, self.frontier.elements, self.token))

    @staticmethod
    def from_bytes(data: bytes) -> ReadCapability | WriteCapability:
        """A capability that another process handed over."""
        try:
            writes, id_, elements, token = msgspec.msgpack.decode(data, type=_Wire)
        except msgspec.DecodeError as error:
            raise CapabilityInvalid(
                "these bytes are not a capability", detail=str(error)
            ) from error
        kind: Any = WriteCapability if writes else ReadCapability
        capability: ReadCapability | WriteCapability = kind(id_, Antichain(elements), token)
        return capability


class ReadCapability(Capability):
    """The right to read at `frontier` and later."""


class WriteCapability(Capability):
    """The right to write at `frontier` and later."""

    writes = True


_Wire = tuple[bool, str, tuple[int, ...], str]
