"""What a view has in the location: its collections, arrangements, and holds on what it reads.

A view and its errors come to life together, move together and go together, each time in one commit.
Its arrangements do, too, but may be shared: views with the same spec read and bring forward one
arrangement, each in its own commits.

Law (holds): what is held of an input never passes a time at which the view itself can be read.
Law (shared): an arrangement is as far as the furthest of its users, and can be read at the last
time of every one of them, for each holds it there. It goes with its last user.

A view that is behind what it shares catches up with that before it goes on (`steps`): so a tick
finds an arrangement either where the view is, and brings it forward, or at or beyond the tick's
end, and leaves it. An arrangement that is not known at a view's first time, or no longer, is not
shared with it: the view has its own.

Where it runs: driver; the control plane alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from noonmark.compute.plan.arrangement import Arrangement, ArrangementSpec, arrangement_of
from noonmark.compute.plan.definition import (
    ARRANGEMENT,
    ERRORS,
    ERRORS_SCHEMA,
    VIEW,
    Definition,
    errors_name,
)
from noonmark.compute.plan.naming import HOLD, arrangement_name, former_hold_id, hold_id
from noonmark.compute.view.tick import Stored
from noonmark.compute.view.written import WAS, check_output, handed_back, held_from, takeover
from noonmark.persist.client import Client
from noonmark.persist.log import command as c
from noonmark.persist.log.state import Collection, Frontier, State
from noonmark.persist.part.run import TIME
from noonmark.persist.spark import Staged
from noonmark.storage import WriteCapability
from noonmark.storage.description import CollectionDescription, description_of
from noonmark.storage.transaction import (
    Transaction,
    creation,
    own_capability,
    own_token,
    reading,
    taking,
)
from noonmark.tvc import EMPTY, Antichain

#: What the description of a view remembers: what its text means to the version that made its rows;
#: and from which time on, if an earlier version made it.
MEANING, RENEWED = "meaning", "renewed"


class Owned:
    """See the module.

    Attributes:
        by_spec: what answers each spec.
    """

    def __init__(
        self,
        client: Client,
        definition: Definition,
        inputs: tuple[str, ...],
        needs: Iterable[ArrangementSpec],
    ) -> None:
        self.client = client
        self.definition = definition
        self.name = definition.name
        self.inputs = inputs
        self._is_own = False
        own = {spec: arrangement_name(spec.digest, self.name) for spec in needs}
        state = client.state
        self.by_spec = {
            spec: arrangement_of(
                name if is_arrangement(state, name) else _usual_name(spec, self.name), spec
            )
            for spec, name in own.items()
        }

    @property
    def names(self) -> list[str]:
        """Of its collections, itself first."""
        kept = [each.name for each in self.by_spec.values()]
        return [self.name, errors_name(self.name), *kept]

    @cached_property
    def details(self) -> dict[str, Any]:
        """What its collection remembers of it."""
        return self._described.details

    @property
    def first_time(self) -> int:
        """From when on it is the view."""
        start: int = self.details["as_of"]
        return start

    @cached_property
    def meaning(self) -> str:
        """What its text means in this version."""
        return self.definition.meaning(self.client.state.names)

    @property
    def is_foreign(self) -> bool:
        """Whether its rows are what another version understood by its text."""
        self._is_own = self._is_own or self._described.details.get(MEANING) == self.meaning
        return not self._is_own

    @property
    def own_from(self) -> int | None:
        """From when on its rows are what this version understands; None while no time is."""
        if self.is_foreign:
            return None
        own: int = self._described.details.get(RENEWED, self.first_time)
        return own

    @property
    def _described(self) -> CollectionDescription:
        return description_of(self.client.state.collection(self.name))

    @property
    def is_written(self) -> bool:
        """Whether its collection was there before it (`noonmark.compute.view.written`)."""
        return WAS in self.details

    # -- life -------------------------------------------------------------------------------

    def begin_at(self) -> int:
        """The latest time at which all inputs are complete; or else the first at which they can be.

        A view may so be made over views that are not hydrated yet: it waits for them. It begins
        somewhat earlier where that lets it share an arrangement.
        """
        state = self.client.state
        collections = [state.collection(name) for name in self.inputs]
        uppers = [each.upper.only() for each in collections]
        complete = min((upper for upper in uppers if upper is not None), default=0) - 1
        first = max([0, *(each.since.only() or 0 for each in collections)])
        usual = max(complete, first)
        usual_names = [_usual_name(spec) for spec in self.by_spec]
        shared = [name for name in usual_names if is_arrangement(state, name)]
        known = [_last_time(state.collection(name)) for name in shared]
        early = min([usual, *(time for time in known if time is not None)])
        return early if early >= first else usual

    def creation(self, as_of: int, write: WriteCapability | None) -> c.Transaction:
        """What brings its collections to life and holds its inputs.

        Args:
            as_of: its first time.
            write: the right to write the collection that it is to be; None to make one.
        """
        state = self.client.state
        self.by_spec = {spec: self.kept(state, spec, as_of) for spec in self.by_spec}
        sql, plan = self.definition.sql, self.definition.plan
        details = {"sql": sql, "as_of": as_of, "inputs": list(self.inputs)}
        details[MEANING] = self.meaning
        if write is None:
            made = CollectionDescription(plan.schema, self.definition.key, VIEW, details)
            output: c.Transaction = (creation(self.name, made, as_of),)
        else:
            found = check_output(state, plan.schema, write)
            held = self._hold(self.name, found.id, held_from(found, as_of))
            output = (*takeover(self.client, write, details, as_of), held)
        errors = CollectionDescription(ERRORS_SCHEMA, (), ERRORS, {"view": self.name})
        commands = [*output, creation(errors_name(self.name), errors, as_of)]
        for each in self.by_spec.values():
            commands += self.arrangement(state, each, as_of, commands)
        inputs = {name: state.collection(name).id for name in self.inputs}
        commands += [self._hold(name, ref, as_of) for name, ref in inputs.items()]
        return tuple(commands)

    def kept(self, state: State, spec: ArrangementSpec, as_of: int) -> Arrangement:
        """The arrangement for a spec; one that is there, if it is known at the first time."""
        name = _usual_name(spec, self.name)
        if name in state.names and not _can_begin(state, name, as_of):
            name = arrangement_name(spec.digest, self.name)
        return arrangement_of(name, spec)

    def arrangement(
        self, state: State, kept: Arrangement, as_of: int, before: Sequence[c.AnyCommand]
    ) -> list[c.AnyCommand]:
        """Take a part in an arrangement, or make it."""
        if kept.name in state.names:
            return [self._hold(kept.name, state.collection(kept.name).id, as_of)]
        ref = state.next_collection + sum(isinstance(each, c.Create) for each in before)
        details = {"as_of": as_of}
        made = CollectionDescription(kept.schema, kept.key, ARRANGEMENT, details)
        own = taking(self.client, ref, as_of)
        return [creation(kept.name, made, as_of, ref), own, self._hold(kept.name, ref, as_of)]

    def renewed(self, time: int) -> c.Annotate:
        """What says that from a time on its rows are what this version understands."""
        found = self._described
        details = {**found.details, MEANING: self.meaning, RENEWED: time}
        after = CollectionDescription(found.schema, found.key, found.kind, details)
        return c.Annotate(self.client.state.names[self.name], after.annotation())

    def renamed(self, after: Definition, needs: Iterable[ArrangementSpec]) -> dict[str, str]:
        """What its collections are called once it, or what it reads, has another name."""
        names = {self.name: after.name, errors_name(self.name): errors_name(after.name)}
        for (spec, kept), then in zip(self.by_spec.items(), needs, strict=True):
            own = "" if kept.name == arrangement_name(spec.digest) else after.name
            names[kept.name] = arrangement_name(then.digest, own)
        return names

    # -- ticks ------------------------------------------------------------------------------

    def steps(self, lower: int, upper: int | None) -> int | None:
        """How far a tick from `lower` may go: not past what others have brought further."""
        state = self.client.state
        kept = [state.collection(each.name).upper.only() for each in self.by_spec.values()]
        return min(
            [time for time in (*kept, upper) if time is not None and time > lower], default=upper
        )

    def late(self, lower: int) -> frozenset[str]:
        """The arrangements that are not yet where the view is: they came to life after it."""
        state, here = self.client.state, Antichain.of(lower)
        names = [each.name for each in self.by_spec.values()]
        return frozenset(n for n in names if not state.collection(n).upper.at_or_beyond(here))

    def behind(self, upper: int | None) -> frozenset[str]:
        """The arrangements that a tick up to there is to bring forward."""
        state, end = self.client.state, _frontier(upper)
        names = [each.name for each in self.by_spec.values()]
        return frozenset(n for n in names if not state.collection(n).upper.at_or_beyond(end))

    def append(
        self, txn: Transaction, name: str, what: Stored, lower: int, upper: Frontier
    ) -> None:
        """What one of its collections is changed by, as a part of a commit.

        Of an arrangement, only what no other view has brought there meanwhile.
        """
        state = self.client.state
        ref = state.collection(name).id
        if name not in (self.name, errors_name(self.name)):
            there = txn.upper_of(ref)
            if there.at_or_beyond(upper):
                return
            time = there.only()
            if time is not None and time > lower and not isinstance(what, Staged):
                lower = time
                what = None if what is None else what.filter(pc.field(TIME) >= time)
        own = own_capability(state, ref, lower)
        if isinstance(what, Staged):
            txn.update_and_downgrade(own, what.rest, upper, stored=what.commands(ref))
        else:
            updates = what if what is not None and what.num_rows else None
            txn.update_and_downgrade(own, updates, upper)

    def let_go(self, txn: Transaction, upper: int, horizon: Frontier) -> None:
        """Let what is older than the horizon be compacted, and move the holds on what is read.

        Those on inputs follow since as it is now: readers may hold the view where the horizon has
        passed.
        """
        names = self.client.state.names
        since = self.client.state.collection(self.name).since
        last = min(horizon.only() or 0, since.only() or 0)
        txn.let_history_go(names[errors_name(self.name)], horizon)
        if self.is_written:
            txn.move_read(self._hold_id(self.name), horizon)
        else:
            txn.let_history_go(names[self.name], horizon)
        for each in self.by_spec.values():
            ref = names[each.name]
            if (txn.upper_of(ref).only() or upper) <= upper:  # no other view is further
                txn.let_history_go(ref, Antichain.of(upper - 1))
            if self._hold_id(each.name) in self.client.state.holds:
                txn.move_read(self._hold_id(each.name), Antichain.of(upper - 1))
        for name in self.inputs:
            frontier = Antichain.of(max(last, self.first_time))
            txn.move_read(self._hold_id(name), frontier)

    # -- holds ------------------------------------------------------------------------------

    @property
    def holds(self) -> dict[str, str]:
        """Of everything that it reads: the holds, and what each is on."""
        kept = [each.name for each in self.by_spec.values()]
        return {self._hold_id(name): name for name in (*self.inputs, self.name, *kept)}

    def all_holds(self, state: State) -> dict[str, str]:
        """As `holds`, and those on arrangements that it does not need any more."""
        by_id = {ref: name for name, ref in state.names.items()}
        known, made = self.holds, {}
        for hold in state.holds.values():
            name = by_id.get(hold.collection, "")
            ours = hold.id in (hold_id(self.name, name), former_hold_id(self.name, name))
            if hold.id in known or (ours and name):
                made[hold.id] = name
        return made

    def _hold_id(self, name: str) -> str:
        return hold_id(self.name, name)

    def _hold(self, name: str, ref: int, as_of: int) -> c.Acquire:
        return reading(self.client, self._hold_id(name), ref, as_of)


def removal(views: Sequence[Owned]) -> c.Transaction:
    """What ends views together: also the arrangements that no other view uses."""
    if not views:
        return ()
    state = views[0].client.state
    held = {hold: name for each in views for hold, name in each.all_holds(state).items()}
    released = [hold for hold in held if hold in state.holds]
    others = held_by_others(state, released)
    drops: dict[str, c.AnyCommand] = {}
    for each in views:
        if each.is_written:
            drops[each.name] = handed_back(each.client, each.name)
            token = own_token(state.names[each.name])
            released += [token] if token in state.holds else []
        own = (each.name, errors_name(each.name))
        kept = [name for name in each.all_holds(state).values() if is_arrangement(state, name)]
        for name in (name for name in (*own, *each.names, *kept) if name in state.names):
            ref = state.collection(name).id
            if name in own or ref not in others:
                drops.setdefault(name, c.Drop(ref))
    return (*map(c.Release, released), *drops.values())


def held_by_others(state: State, released: Iterable[str]) -> set[int]:
    """The collections that views hold by other holds than these."""
    gone = set(released)
    holds = state.holds.values()
    return {hold.collection for hold in holds if hold.id.startswith(HOLD) and hold.id not in gone}


def is_arrangement(state: State, name: str) -> bool:
    """Whether a collection is there, and keeps something for views."""
    if name not in state.names:
        return False
    found = state.collection(name)
    return bool(found.annotation) and description_of(found).kind == ARRANGEMENT


def _usual_name(spec: ArrangementSpec, view: str = "") -> str:
    return arrangement_name(spec.digest, "" if spec.can_be_shared else view)


def _can_begin(state: State, name: str, as_of: int) -> bool:
    """Whether a view may begin at a time with what is kept under a name."""
    kept = state.collection(name)
    if not is_arrangement(state, name) or not kept.since.less_equal(as_of):
        return False
    return _last_time(kept) == as_of or not kept.upper.less_equal(as_of)


def _last_time(kept: Collection) -> int | None:
    """The last time at which what is kept is known, or will be the first; None for all times."""
    upper = kept.upper.only()
    begun: int = description_of(kept).details["as_of"]
    return begun if upper == begun else None if upper is None else upper - 1


def _frontier(upper: int | None) -> Frontier:
    return EMPTY if upper is None else Antichain.of(upper)
