"""Minting: the next binding, as updates to the remap.

A *probe* is what the source answered when asked for its upper: the frontier up to which it is
complete now. Minting at time t binds t to the probe, retracts the frontier that held before and
asserts the new one, both at t: no reader can see one without the other.

Law (durable first): the updates and the new upper are one append to the remap, for [old upper, new
upper). What gives a time to a record is durable before that record is, or in the same commit.
Law (monotone): on either axis nothing goes back. A time below upper is complete already; a probe
that is not at or beyond the latest frontier would make complete offsets incomplete again (the
source was recreated or truncated). Both are refused, and nothing changes.
Law (idle): a probe equal to the latest frontier gives no updates, and still completes time t.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from noonmark.errors import FrontierRegression
from noonmark.remap.binding import Binding, Remap, S, changes
from noonmark.tvc import EMPTY, Antichain, Update


class Minted(NamedTuple, Generic[S]):
    """The updates to append to the remap, and the remap once they are: its upper is the new one."""

    updates: list[Update[S, int]]
    remap: Remap[S]


def begin(start: Antichain[S], time: int) -> Minted[S]:
    """The first binding of a new source, which makes `time` the since of its remap.

    `start` is where reading begins: the minimum of the source's order, or the offsets asked for.
    What lies before it is never read, so no record has `time` itself.
    """
    remap = Remap((Binding(time, start),), _after(time))
    return Minted(remap.updates(), remap)


def mint(remap: Remap[S], probe: Antichain[S], time: int) -> Minted[S]:
    """Bind `time`, which is in the remap's upper, to `probe`, which is at or beyond the latest."""
    if not remap.upper.less_equal(time):
        raise FrontierRegression(
            f"time {time} is already complete in the remap",
            detail=f"Its upper is {remap.upper!r}.",
            axis="time",
            time=time,
        )
    if not probe.at_or_beyond(remap.latest):
        raise FrontierRegression(
            "the source went backwards",
            detail=f"It was complete up to {remap.latest!r}, and now says {probe!r}.",
            hint="If it was recreated upstream, drop the source and create it again.",
            axis="source",
            probe=probe,
        )
    binding = Binding(time, probe)
    updates = changes(remap.latest, binding)
    bindings = (*remap.bindings, binding) if updates else remap.bindings
    return Minted(updates, Remap(bindings, _after(time)))


def seal(remap: Remap[S]) -> Remap[S]:
    """No binding will follow: the last one holds for ever."""
    return Remap(remap.bindings, EMPTY)


def _after(time: int) -> Antichain[int]:
    return Antichain.of(time + 1)
