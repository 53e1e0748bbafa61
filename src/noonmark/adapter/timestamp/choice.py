"""At which time a query is asked: one time for all of its inputs.

A collection is exact at t when ``since <= t`` and not ``upper <= t``. A time for a query is bounded
from below by

    since      the greatest since of the inputs: before it an answer is gone
    as of      what the query asks for: exactly that time, or with AT LEAST that time or later
    oracle     strict serializable: every acknowledged write, every earlier read
    now        strict serializable, of what follows the time: the clock when the query arrived
    recency    real-time recency: all that upstream had when the query arrived

and the freshest time at which all inputs are complete is ``least upper - 1``.

Law (allowed): the chosen time is at or beyond every bound; under AS OF it is that time.
Law (strict): without AS OF it is the least allowed time, so a read waits for no more than it must.
Law (serializable): it is the freshest time that answers at once, where one is allowed, else the
least allowed time: such a read waits only where no time answers at once.
Law (no guess): when no time is allowed the answer is an error that names the bound that binds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from noonmark.errors import BeforeSince, UsageError
from noonmark.persist.log.state import Collection

STRICT, SERIALIZABLE = "strict serializable", "serializable"
#: The names that SET transaction_isolation takes, and what each of them means here.
ISOLATION = {
    "strict serializable": STRICT,
    "serializable": SERIALIZABLE,
    # PostgreSQL's weaker levels may be served by a stronger one.
    "repeatable read": SERIALIZABLE,
    "read committed": SERIALIZABLE,
    "read uncommitted": SERIALIZABLE,
}


@dataclass(frozen=True)
class Input:
    """The frontiers of one input; None is the empty frontier."""

    name: str
    since: int | None
    upper: int | None

    @classmethod
    def of(cls, collection: Collection) -> Input:
        """As the state has it."""
        return cls(collection.name, collection.since.only(), collection.upper.only())

    def complete_at(self, time: int) -> bool:
        """Whether nothing will change at `time` any more."""
        return self.upper is None or self.upper > time


@dataclass(frozen=True)
class Question:
    """All that decides.

    Attributes:
        inputs: every collection that is read.
        oracle: the oracle's read time.
        isolation: `STRICT` or `SERIALIZABLE`.
        as_of: the time that the query asks for.
        at_least: whether a later time will do, too.
        recency: the time by which all that upstream had is in; None when it was not asked for.
        now: the clock when the query arrived, if rows come and go with the time; else None.
    """

    inputs: tuple[Input, ...]
    oracle: int
    isolation: str = STRICT
    as_of: int | None = None
    at_least: bool = False
    recency: int | None = None
    now: int | None = None

    @property
    def names_its_time(self) -> bool:
        """Whether the query is to be asked at one time and no other."""
        return self.as_of is not None and not self.at_least


@dataclass(frozen=True)
class Choice:
    """The time, and why.

    Attributes:
        time: at which the query is asked.
        bounds: every lower bound, by what it comes from.
        binds: which of them decided; "upper" when the freshest complete time did, "as of" when the
            query named it.
        freshest: the last time at which every input is complete; None when all are for ever.
        waits: the inputs that are not complete at the time yet.
    """

    time: int
    bounds: tuple[tuple[str, int], ...]
    binds: str
    freshest: int | None
    waits: tuple[str, ...]


def select_timestamp(question: Question) -> Choice:
    """The time of a query.

    Raises:
        BeforeSince: the time that is asked for is gone; names the earliest.
        UsageError: an input has ended, and has no readable time.
    """
    bounds = _bounds(question)
    binds, lower = max(bounds, key=lambda bound: bound[1])
    uppers = [each.upper for each in question.inputs if each.upper is not None]
    freshest = min(uppers) - 1 if uppers else None
    if question.names_its_time:
        assert question.as_of is not None
        _check_history(question)
        binds, time = "as of", question.as_of
    elif question.isolation == SERIALIZABLE and freshest is not None and freshest > lower:
        binds, time = "upper", freshest
    else:
        time = lower
    waits = tuple(each.name for each in question.inputs if not each.complete_at(time))
    return Choice(time, bounds, binds, freshest, waits)


def _bounds(question: Question) -> tuple[tuple[str, int], ...]:
    bounds = [("since", _since(question.inputs)[1])]
    if question.as_of is not None:
        bounds.append(("as of", question.as_of))
    # What has no input has no frontiers either: it is asked now.
    if question.names_its_time:
        return tuple(bounds)
    if question.isolation == STRICT or not question.inputs:
        bounds.append(("oracle", question.oracle))
    if question.isolation == STRICT and question.now is not None:
        bounds.append(("now", question.now))
    if question.recency is not None:
        bounds.append(("recency", question.recency))
    return tuple(bounds)


def _since(inputs: Iterable[Input]) -> tuple[str, int]:
    """The greatest since, and whose it is."""
    name, greatest = "", 0
    for each in inputs:
        if each.since is None:
            raise UsageError(
                f'"{each.name}" has ended and cannot be read',
                detail="Its read frontier is empty: no time is readable any more.",
                collection=each.name,
            )
        if each.since > greatest:
            name, greatest = each.name, each.since
    return name, greatest


def _check_history(question: Question) -> None:
    name, since = _since(question.inputs)
    if question.as_of is not None and question.as_of < since:
        raise BeforeSince(
            f"cannot read as of {question.as_of}: the earliest readable time is {since}",
            detail=f'"{name}" keeps its history from {format_time(since)} on.',
            hint=f"Read AS OF AT LEAST {since}, or keep more with RETAIN HISTORY FOR.",
            as_of=question.as_of,
            earliest=since,
            collection=name,
        )


def format_time(time: int) -> str:
    """A time as people read it, and as it is.

    >>> format_time(1_700_000_000_123)
    '1700000000123 (2023-11-14 22:13:20.123)'
    """
    try:
        moment = datetime.fromtimestamp(time // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)
    return f"{time} ({moment:%Y-%m-%d %H:%M:%S}.{time % 1000:03d})"


def explain(question: Question, choice: Choice) -> list[str]:
    """Everything that decided, a line each."""
    lines = [
        f"          query timestamp: {format_time(choice.time)}",
        f"                isolation: {question.isolation}",
        f"               decided by: {choice.binds}",
    ]
    lines += [f"{f'bound by {what}':>25}: {format_time(time)}" for what, time in choice.bounds]
    fresh = "every time" if choice.freshest is None else format_time(choice.freshest)
    lines.append(f"      complete at once to: {fresh}")
    lines.append(f"          answers at once: {'no' if choice.waits else 'yes'}")
    for each in question.inputs:
        since = "[]" if each.since is None else f"[{format_time(each.since)}]"
        upper = "[]" if each.upper is None else f"[{format_time(each.upper)}]"
        state = "waited for" if each.name in choice.waits else "complete"
        lines += ["", f"input {each.name}: {state}", f"  read frontier: {since}"]
        lines.append(f" write frontier: {upper}")
    return [line.rstrip() for line in lines]
