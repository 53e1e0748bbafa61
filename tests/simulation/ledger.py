"""What the log says of capabilities, judged entry by entry, without a line of the product.

The ledger sees every entry of the log when it becomes durable, in order, and keeps what it means
for the collections that Storage made. Laws, after each transaction:

- upper is the meet of all write capabilities, since the meet of all read capabilities and of upper;
  without write capabilities upper stays, and neither frontier ever goes back;
- a capability is given at or beyond the frontier that it holds back;
- a capability that was dropped, has expired, or is not where it is said to be changes nothing;
- updates come with the downgrade of a write capability of their collection, at times from where it
  was to before where it is then;
- an id that was bound is never bound again.

Frontiers are numbers here, `NEVER` for the empty one; the meet of some is their minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from noonmark.persist.log import command as c
from noonmark.persist.log.state import State

from .model import NEVER, Violation, time_of


@dataclass(frozen=True)
class Right:
    """A capability, or any other hold, as an entry left it; `at` is None when it is gone."""

    token: str
    ref: int
    writes: bool
    at: int | None
    expires_ms: int
    seqno: int


@dataclass
class Bound:
    """An id and its frontiers."""

    id: str
    since: int
    upper: int

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be read or written any more."""
        return self.since == NEVER


@dataclass(frozen=True)
class Page:
    """Everything about capabilities that a state of that number must show."""

    frontiers: dict[str, tuple[int, int]]
    rights: dict[str, int]


@dataclass
class Ledger:
    """See the module."""

    bound: dict[int, Bound] = field(default_factory=dict)
    rights: dict[str, Right] = field(default_factory=dict)
    #: Every right that ever was, as each entry left it, oldest first.
    past: dict[str, list[Right]] = field(default_factory=dict)
    pages: dict[int, Page] = field(default_factory=dict)
    seqno: int = 0
    _now_ms: int = 0
    _next: int = 1

    # -- entries ----------------------------------------------------------------------------

    def enter(self, entry: c.Entry) -> None:
        """An entry became durable."""
        self.seqno, self._now_ms = entry.seqno, max(self._now_ms, entry.now_ms)
        for transaction in entry.transactions:
            self._apply(transaction)
        frontiers = {each.id: (each.since, each.upper) for each in self.bound.values()}
        rights = {token: each.at for token, each in self.rights.items() if each.at is not None}
        self.pages[entry.seqno] = Page(frontiers, rights)

    def _apply(self, transaction: c.Transaction) -> None:
        before = dict(self.rights)
        for command in transaction:
            match command:
                case c.Create():
                    self._create(command)
                case c.Acquire() if command.collection in self.bound:
                    self._acquire(command)
                case c.Downgrade() if command.id in self.past:
                    self._downgrade(command)
                case c.Release() if command.id in self.past:
                    self._end(self._living(command.id))
                case c.Expire():
                    for token in command.ids:
                        right = self.rights.get(token)
                        if right is not None and right.expires_ms <= self._now_ms:
                            self._end(right)
                case c.Close() if command.collection in self.bound:
                    self.bound[command.collection].upper = NEVER
                    for right in [r for r in self.rights.values() if r.ref == command.collection]:
                        self._end(right)
                case c.Seal() if command.collection in self.bound:
                    bound = self.bound[command.collection]
                    bound.upper = max(bound.upper, time_of(command.upper))
        for command in transaction:
            if isinstance(command, c.Append) and command.collection in self.bound:
                self._check_append(command, before)
        for ref, bound in self.bound.items():
            self._follow(ref, bound)

    def _follow(self, ref: int, bound: Bound) -> None:
        """The laws of upper and since."""
        rights = [right for right in self.rights.values() if right.ref == ref]
        writers = [right.at for right in rights if right.writes and right.at is not None]
        readers = [right.at for right in rights if not right.writes and right.at is not None]
        bound.upper = max(bound.upper, min(writers, default=bound.upper))
        bound.since = max(bound.since, min([*readers, bound.upper]))

    def _create(self, command: c.Create) -> None:
        ref, self._next = self._next, self._next + 1
        if self.is_bound(command.name):
            raise Violation(f'id "{command.name}" was bound a second time')
        if command.annotation:
            at = time_of(command.frontier)
            self.bound[ref] = Bound(command.name, at, at)

    def _acquire(self, command: c.Acquire) -> None:
        bound, at = self.bound[command.collection], time_of(command.frontier)
        if at < (bound.upper if command.writes else bound.since):
            raise Violation(f'a capability on "{bound.id}" was given at {at}, behind {bound}')
        self._note(
            Right(
                command.id, command.collection, command.writes, at, command.expires_ms, self.seqno
            )
        )

    def _downgrade(self, command: c.Downgrade) -> None:
        right, at = self._living(command.id), time_of(command.frontier)
        assert right.at is not None
        stated = right.at if command.stated is None else time_of(command.stated)
        if stated != right.at or at < right.at:
            raise Violation(f"{right} was stated to be at {stated} and moved to {at}")
        expires_ms = max(right.expires_ms, command.expires_ms)
        self._note(replace(right, at=at, expires_ms=expires_ms, seqno=self.seqno))

    def _living(self, token: str) -> Right:
        right = self.rights.get(token)
        if right is None or right.expires_ms <= self._now_ms:
            raise Violation(f"capability {token} was used at {self._now_ms}: {right}")
        return right

    def _end(self, right: Right) -> None:
        self._note(replace(right, at=None, seqno=self.seqno))
        del self.rights[right.token]

    def _note(self, right: Right) -> None:
        self.rights[right.token] = right
        self.past.setdefault(right.token, []).append(right)

    def _check_append(self, append: c.Append, before: dict[str, Right]) -> None:
        for token, was in before.items():
            now = self.rights.get(token)
            if not (was.writes and was.ref == append.collection and now is not None):
                continue
            assert was.at is not None
            assert now.at is not None
            if was.at <= append.time_min and append.time_max < now.at:
                return
        raise Violation(f'"{self.bound[append.collection].id}" was written without a capability')

    # -- questions --------------------------------------------------------------------------

    def is_bound(self, id: str) -> bool:
        """Whether the id was ever bound."""
        return any(each.id == id for each in self.bound.values())

    def find(self, id: str) -> Bound | None:
        """The collection of an id."""
        return next((each for each in self.bound.values() if each.id == id), None)

    def during(self, token: str, began: int) -> list[Right]:
        """What a capability was after entry `began` and after each entry since."""
        past = self.past.get(token, [])
        earlier = [right for right in past if right.seqno <= began]
        return earlier[-1:] + [right for right in past if right.seqno > began]

    def check_state(self, process: str, state: State) -> None:
        """A process has this state."""
        page = self.pages.get(state.seqno)
        if page is None:
            return
        bound = {ref: state.collections[ref] for ref in self.bound if ref in state.collections}
        found = {x.name: (time_of(x.since), time_of(x.upper)) for x in bound.values()}
        if found != page.frontiers:
            raise Violation(
                f"{process} has frontiers {found} at {state.seqno}, should be {page.frontiers}"
            )
        held = {h.id: time_of(h.frontier) for h in state.holds.values() if h.collection in bound}
        if held != page.rights:
            raise Violation(f"{process} has other capabilities at {state.seqno} than the log")
