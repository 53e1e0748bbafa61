"""Bindings, and the remap collection that they make up.

A binding (t, f) states: at time t this source was complete up to frontier f. Between two bindings
the last one holds. The *remap* of a source is the collection whose contents at t are the elements
of the frontier F(t) that holds at t, one row each. Binding {0} at 1, then {3} at 2 is written as

    (0, 1, +1)
    (0, 2, -1)  (3, 2, +1)

A remap is certain for the times in [since, upper), like every collection. It begins with a binding
at since, so that F(t) exists for each of them: no rows at t means the empty frontier (the source
has finished), never "not known".

Law (monotone): t <= u implies that F(u) is at or beyond F(t).
Law (rows): integrate(remap.updates(), t) is one of each element of F(t), for t in [since, upper).
Law (inverse): Remap.from_updates(remap.updates(), since, upper) == remap.

Every binding of a `Remap` changes the frontier, except the first; so equal remaps are equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Generic, NamedTuple, TypeVar, final

from noonmark.errors import BeforeSince, InvalidValue, NotYetComplete
from noonmark.tvc import Antichain, Time, Update, advance, consolidate

S = TypeVar("S", bound=Time)
T = TypeVar("T", bound=Time)


class Binding(NamedTuple, Generic[S, T]):
    """At `time` the source was complete up to `frontier`."""

    time: T
    frontier: Antichain[S]


@final
@dataclass(frozen=True, slots=True)
class Remap(Generic[S]):
    """The bindings of one source on the timeline, for the times in [since, upper).

    `bindings` is sorted by time, starts at since, is never empty and never goes back: `mint.begin`,
    `mint.mint` and `from_updates` see to that, each for what it adds.
    """

    bindings: tuple[Binding[S, int], ...]
    upper: Antichain[int]

    def __post_init__(self) -> None:
        if not self.bindings:
            raise InvalidValue("a remap begins with a binding")
        if self.upper.less_equal(self.bindings[-1].time):
            raise InvalidValue(
                f"the last binding, at {self.bindings[-1].time}, is not before upper {self.upper!r}"
            )

    @property
    def since(self) -> Antichain[int]:
        """The read frontier: the time of the first binding."""
        return Antichain.of(self.bindings[0].time)

    @property
    def latest(self) -> Antichain[S]:
        """The frontier that the source had reached at the last binding."""
        return self.bindings[-1].frontier

    def frontier_at(self, time: int) -> Antichain[S]:
        """F(time): what the remap holds ``AS OF time``."""
        if not self.since.less_equal(time):
            raise BeforeSince(
                f"the remap at {time} is gone", detail=f"Its since is {self.since!r}.", time=time
            )
        if self.upper.less_equal(time):
            raise NotYetComplete(
                f"the remap at {time} is still open", detail=f"Its upper is {self.upper!r}."
            )
        index = bisect_right(self.bindings, time, key=lambda binding: binding.time)
        return self.bindings[index - 1].frontier

    def updates(self) -> list[Update[S, int]]:
        """The remap as a collection."""
        first = self.bindings[0]
        made = [Update(element, first.time, +1) for element in first.frontier.elements]
        for earlier, later in pairwise(self.bindings):
            made += changes(earlier.frontier, later)
        return made

    @classmethod
    def from_updates(
        cls, updates: Iterable[Update[S, int]], since: Antichain[int], upper: Antichain[int]
    ) -> Remap[S]:
        """Read a remap back from its collection, exact for the times in [since, upper)."""
        start = since.only()
        if start is None or upper.less_equal(start):
            raise InvalidValue(
                f"a collection that is certain nowhere, from {since!r} to {upper!r}, is no remap"
            )
        exact = consolidate(advance(updates, since))
        rows: set[S] = set()
        bindings: list[Binding[S, int]] = []
        for time, group in groupby(exact, key=lambda update: update.time):
            if time > start and not bindings:
                bindings.append(Binding(start, Antichain(())))
            _apply(rows, group)
            frontier = Antichain(rows)
            if len(frontier.elements) != len(rows):
                raise InvalidValue(f"the rows of the remap at {time} are no frontier", time=time)
            if bindings and not frontier.at_or_beyond(bindings[-1].frontier):
                raise InvalidValue(f"the remap goes backwards at {time}", time=time)
            bindings.append(Binding(time, frontier))
        return cls(tuple(bindings) or (Binding(start, Antichain(())),), upper)


def changes(old: Antichain[S], new: Binding[S, int]) -> list[Update[S, int]]:
    """Retract the old frontier and assert the new one, at one time: what both share stays."""
    gone = [Update(element, new.time, -1) for element in old.elements]
    come = [Update(element, new.time, +1) for element in new.frontier.elements]
    return consolidate(gone + come)


def _apply(rows: set[S], updates: Iterable[Update[S, int]]) -> None:
    for element, time, diff in updates:
        if diff != (-1 if element in rows else +1):
            raise InvalidValue(
                f"the remap holds {element!r} at {time} other than once", element=element, time=time
            )
        rows ^= {element}
