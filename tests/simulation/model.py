"""What must be true: collections as plain lists of updates, and what became of every operation.

Each operation that writes has a *marker*, a row of its own at each time that it writes at, so
that a read shows whether the operation happened. An operation is acknowledged, refused, or in
doubt (its answer was lost, or its process died). Laws, for the whole run:

- an acknowledged operation is seen by every read at or after its times, a refused one by none; one
  in doubt happened or did not, and whatever one read shows, all others show, in all collections;
- the contents of a collection at a time are the sum of the updates of the operations that happened:
  so every read at that time gives the same answer, through whichever process;
- frontiers never go back, and states with the same number are the same for everybody;
- nothing is refused without a reason that the operations so far can give;
- what was called behind an operation on the same collection before the failure of that one was
  told, and relies on it (`noonmark.persist.log.dependence`), does not happen when that one failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from noonmark.errors import BehindFailure, UsageError
from noonmark.persist.log.state import Frontier, State

if TYPE_CHECKING:
    from .ledger import Ledger

Row = tuple[Any, ...]
Fate = Literal["pending", "acknowledged", "refused", "in doubt"]

#: A frontier that is empty, as a number: beyond every time.
NEVER = 2**62
MARKER = 1_000_000

#: Two collections that are only ever changed together, by the same updates and seals.
LEFT, RIGHT = "left", "right"


def marker_of(number: int) -> Row:
    """The row that is one operation's alone, at each time that it writes at."""
    return (MARKER + number, "marker")


class Violation(Exception):
    """A law was broken: a defect of the product, or of the simulation."""


def time_of(frontier: Frontier) -> int:
    """The one time of a frontier, or `NEVER`."""
    time = frontier.only()
    return NEVER if time is None else time


@dataclass
class Operation:
    """One call that changes collections, and what is known of its fate."""

    number: int
    process: str
    what: str
    updates: dict[str, list[tuple[Row, int, int]]] = field(default_factory=dict)
    seals: dict[str, int] = field(default_factory=dict)
    allows: dict[str, int] = field(default_factory=dict)
    drops: str | None = None
    creates: str | None = None
    evolves: str | None = None
    expects: str | None = None
    fate: Fate = "pending"
    #: Whether a read showed that it happened, or that it did not.
    seen: bool | None = None
    seqno: int = 0
    #: Those on the same collections that its process had not answered when it was called.
    behind: list[Operation] = field(default_factory=list)
    failed: bool = False
    #: By a mistake of the call, not of storage.
    refused: bool = False

    def takes(self, other: Operation) -> bool:
        """Whether one behind this one, which failed, fails with it."""
        if other.expects is not None or other.creates is not None:
            return False
        completed, changed = {*other.seals, *other.allows}, self.changed
        return bool(changed & (completed if self.refused else {*completed, *other.updates}))

    @property
    def changed(self) -> set[str]:
        """The collections that it was to change."""
        return {*self.updates, *self.seals, *self.allows, *([self.evolves] if self.evolves else [])}

    @property
    def marker(self) -> Row:
        """The row that is this operation's alone."""
        return marker_of(self.number)

    @property
    def happened(self) -> bool:
        """Whether it is known to have happened."""
        return self.fate == "acknowledged" or self.seen is True

    @property
    def possible(self) -> bool:
        """Whether it can have happened."""
        return self.fate != "refused" and self.seen is not False

    def is_before(self, other: Operation, name: str) -> bool:
        """Whether another one of the same process is called while this one has no answer."""
        return self.fate == "pending" and self.process == other.process and name in self.changed

    def time_min(self, name: str) -> int:
        """The first time that it writes at; that of its marker."""
        return min(time for _, time, _ in self.updates[name])

    def __str__(self) -> str:
        return f"operation {self.number} ({self.what} by {self.process}, {self.fate})"


@dataclass
class HeldFrontier:
    """An acknowledged hold, as far as it is certain that it binds."""

    id: str
    name: str
    frontier: int
    expires_ms: int


class Model:
    """See the module."""

    def __init__(self, ledger: Ledger, clocks: Callable[[], Iterable[int]] = tuple) -> None:
        self.ledger = ledger
        self._clocks = clocks
        self.operations: list[Operation] = []
        self.by_collection: dict[str, list[Operation]] = {}
        self.answers: dict[tuple[str, int], Counter[Row]] = {}
        self.holds: dict[str, HeldFrontier] = {}
        self._latest_ms = 0
        self.reads = 0
        self.steps_heard = 0
        self._states: dict[int, Any] = {}
        self._observed: dict[str, State] = {}

    # -- operations -------------------------------------------------------------------------

    def begin(self, process: str, what: str, **details: Any) -> Operation:
        """An operation is about to be called."""
        operation = Operation(len(self.operations), process, what, **details)
        self.operations.append(operation)
        names = {*operation.updates, *operation.seals, *operation.allows}
        names |= {n for n in (operation.drops, operation.creates, operation.evolves) if n}
        for name in sorted(names):
            others = self.by_collection.setdefault(name, [])
            operation.behind += [o for o in others if o.is_before(operation, name)]
            others.append(operation)
        return operation

    def acknowledge(self, operation: Operation, state: State) -> None:
        """The operation was answered with success."""
        operation.fate, operation.seqno = "acknowledged", state.seqno
        if operation.seen is False:
            raise Violation(f"{operation} was acknowledged after a read without it")
        self._check_behind(operation)
        for name in operation.updates:
            self._check_accepted(operation, name)
        for name in operation.seals:
            for other in self.by_collection[name]:
                if other.updates.get(name) and other.fate == "acknowledged":
                    self._check_accepted(other, name)

    def fail(self, operation: Operation) -> None:
        """The operation was answered with an error, by a process that lives."""
        operation.failed = True
        for other in self.operations[operation.number + 1 :]:
            if other.fate == "acknowledged":
                self._check_behind(other)

    def _check_behind(self, operation: Operation) -> None:
        lost = [other for other in operation.behind if other.failed and other.takes(operation)]
        if lost:
            raise Violation(f"{operation} happened behind {lost[0]}, which failed")

    def reason_to_give_up(self, operation: Operation) -> bool:
        """Whether one that it relies on has failed, or may have."""
        return any(o.fate != "acknowledged" and o.takes(operation) for o in operation.behind)

    def _check_accepted(self, write: Operation, name: str) -> None:
        """A write is never accepted at a time that was complete before."""
        first = write.time_min(name)
        for other in self.by_collection[name]:
            sealed = other.seals.get(name, 0)
            if other.fate == "acknowledged" and other.seqno < write.seqno and sealed > first:
                raise Violation(f'{write} wrote to "{name}" at {first}, which {other} had sealed')

    def refuse(self, operation: Operation, error: Exception) -> None:
        """The operation was answered with an error that says that nothing happened."""
        operation.fate = "refused"
        root = error.__cause__ if isinstance(error, BehindFailure) else error
        operation.refused = isinstance(root, UsageError)
        if operation.seen:
            raise Violation(f"{operation} was refused after a read had shown it: {error}")

    def doubt(self, operation: Operation) -> None:
        """Nobody knows what became of the operation."""
        operation.fate = "in doubt"

    # -- reasons ----------------------------------------------------------------------------

    def upper_may_exceed(self, name: str, time: int, operation: Operation) -> bool:
        """Whether upper can have been beyond `time` when `operation` was judged.

        What the same process asked for later cannot be the reason: calls are applied in order.
        """
        return any(
            other.seals.get(name, 0) > time
            and other.possible
            and (other.number < operation.number or other.process != operation.process)
            for other in self.by_collection.get(name, ())
        )

    @property
    def latest_ms(self) -> int:
        """The latest time that any process has seen: leases until then may have ended."""
        self._latest_ms = max([self._latest_ms, *self._clocks()])
        return self._latest_ms

    def since_may_exceed(self, name: str, time: int) -> bool:
        """Whether since can be beyond `time`, given what was allowed and what is held."""
        bound = self.ledger.find(name)
        if bound is not None:
            return bound.since > time
        allowed = any(
            other.allows.get(name, 0) > time and other.possible
            for other in self.by_collection.get(name, ())
        )
        held = any(
            hold.name == name and hold.frontier <= time and hold.expires_ms > self.latest_ms
            for hold in self.holds.values()
        )
        return allowed and not held

    def may_be_dropped(self, name: str) -> bool:
        """Whether the collection can be gone."""
        return any(o.drops == name and o.possible for o in self.by_collection.get(name, ()))

    # -- reads ------------------------------------------------------------------------------

    def undecided(self, name: str, time: int) -> bool:
        """Whether a read of `name` at `time` would tell the fate of an operation."""
        return any(
            o.fate != "refused" and not o.happened and o.seen is None and o.time_min(name) <= time
            for o in self._writes(name)
        )

    def check_contents(self, reader: str, name: str, time: int, found: Counter[Row]) -> None:
        """A whole read of a collection at one time."""
        self.reads += 1
        for operation in self._writes(name):
            if operation.time_min(name) <= time:
                self._settle(operation, operation.marker in found, reader, name, time)
        expected = self.contents(name, time)
        if found != expected:
            raise Violation(f'{reader} read "{name}" at {time}: ' + _difference(found, expected))
        known = self.answers.setdefault((name, time), found)
        if known != found:
            raise Violation(f'"{name}" at {time} was read twice: ' + _difference(found, known))

    def check_part(
        self, reader: str, name: str, time: int, found: Counter[Row], expected: Counter[Row]
    ) -> None:
        """A read of some rows or columns."""
        self.reads += 1
        if found != expected:
            raise Violation(f'{reader} read of "{name}" at {time}: ' + _difference(found, expected))

    def check_changes(
        self, reader: str, name: str, start: int, end: int, found: Counter[tuple[Row, int]]
    ) -> None:
        """The updates of a listen at times from `start` on and before `end`."""
        self.steps_heard += 1
        for operation in self._writes(name):
            for row, time, _ in operation.updates[name]:
                if row == operation.marker and start <= time < end:
                    self._settle(operation, (row, time) in found, reader, name, time)
        expected: Counter[tuple[Row, int]] = Counter()
        for operation in self._writes(name):
            if operation.happened:
                for row, time, diff in operation.updates[name]:
                    if start <= time < end:
                        expected[row, time] += diff
        expected = _nonzero(expected)
        if found != expected:
            raise Violation(
                f'{reader} heard "{name}" in [{start}, {end}): ' + _difference(found, expected)
            )

    def contents(self, name: str, time: int) -> Counter[Row]:
        """The rows of a collection at a time, by all that is known to have happened."""
        counts: Counter[Row] = Counter()
        for operation in self._writes(name):
            if operation.happened:
                for row, at, diff in operation.updates[name]:
                    if at <= time:
                        counts[row] += diff
        return _nonzero(counts)

    def _writes(self, name: str) -> Iterable[Operation]:
        return [o for o in self.by_collection.get(name, ()) if name in o.updates]

    def _settle(self, operation: Operation, there: bool, reader: str, name: str, time: int) -> None:
        if operation.fate == "acknowledged" and not there:
            raise Violation(f'{operation} is missing: {reader} read "{name}" at {time}')
        if operation.fate == "refused" and there:
            raise Violation(f'{operation} is there: {reader} read "{name}" at {time}')
        if operation.seen is None:
            operation.seen = there

    # -- states -----------------------------------------------------------------------------

    def observe(self, process: str, state: State) -> None:
        """A process has come to this state."""
        before = self._observed.get(process)
        if before is state:
            return
        self._observed[process] = state
        self._latest_ms = max(self.latest_ms, state.now_ms)
        summary = {
            c.name: (time_of(c.since), time_of(c.upper), len(c.batches), len(c.schemas))
            for c in state.collections.values()
        }
        if self._states.setdefault(state.seqno, summary) != summary:
            raise Violation(f"{process} has another state {state.seqno} than somebody else")
        if before is not None:
            self._check_forward(process, before, state)
        self._check_pair(process, summary)
        for hold in state.holds.values():
            held = state.collections.get(hold.collection)
            if held is not None and not hold.frontier.at_or_beyond(held.since):
                raise Violation(f'since of "{held.name}" passed hold {hold.id}')
        self.ledger.check_state(process, state)
        for name, (_, upper, _, _) in summary.items():
            if not self.ledger.is_bound(name):
                self._check_upper(process, state, name, upper)
        self._note_holds(state)

    def _check_forward(self, process: str, before: State, after: State) -> None:
        if after.seqno < before.seqno:
            raise Violation(f"{process} went back from state {before.seqno} to {after.seqno}")
        for ref, old in before.collections.items():
            new = after.collections.get(ref)
            if new is not None and not (
                new.since.at_or_beyond(old.since) and new.upper.at_or_beyond(old.upper)
            ):
                raise Violation(f'{process} saw a frontier of "{old.name}" go back')

    def _check_pair(self, process: str, summary: dict[str, tuple[int, int, int, int]]) -> None:
        left, right = summary.get(LEFT), summary.get(RIGHT)
        if left is not None and right is not None and left[1] != right[1]:
            raise Violation(f"{process} saw half of an atomic operation: {left} and {right}")

    def _check_upper(self, process: str, state: State, name: str, upper: int) -> None:
        asked = {0}
        for operation in self.by_collection.get(name, ()):
            sealed = operation.seals.get(name)
            if sealed is None:
                continue
            is_due = operation.fate == "acknowledged" and operation.seqno <= state.seqno
            if is_due and upper < sealed:
                raise Violation(f'{process} has "{name}" at {upper} after {operation}')
            if operation.possible:
                asked.add(sealed)
        if upper not in asked:
            raise Violation(f'{process} has "{name}" at {upper}, which nobody asked for')

    # -- holds ------------------------------------------------------------------------------

    def hold(self, hold: HeldFrontier) -> None:
        """A hold was acknowledged."""
        self.holds[hold.id] = hold

    def let_go(self, id: str, frontier: int | None) -> None:
        """A hold is about to be moved forward or released."""
        if frontier is None:
            self.holds.pop(id, None)
        elif id in self.holds:
            self.holds[id].frontier = max(self.holds[id].frontier, frontier)

    def is_held(self, id: str) -> bool:
        """Whether a hold certainly binds: acknowledged, not released, not expired by any clock."""
        return id in self.holds and self.holds[id].expires_ms > self.latest_ms

    def _note_holds(self, state: State) -> None:
        """Leases are renewed."""
        for held in self.holds.values():
            found = state.holds.get(held.id)
            if found is not None:
                held.expires_ms = max(held.expires_ms, found.expires_ms)


def _nonzero(counts: Counter[Any]) -> Counter[Any]:
    return Counter({item: count for item, count in counts.items() if count})


def _difference(found: Counter[Any], expected: Counter[Any]) -> str:
    more = {k: v - expected.get(k, 0) for k, v in found.items() if v != expected.get(k, 0)}
    less = {k: v for k, v in expected.items() if k not in found}
    return f"too many {more}, missing {less}"
