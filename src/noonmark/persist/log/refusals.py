"""Refusals that more than one place raises, worded once."""

from __future__ import annotations

from noonmark.errors import BeforeSince, BelowUpper
from noonmark.persist.log.state import Collection, Frontier
from noonmark.tvc import Antichain


def format_frontier(frontier: Frontier) -> str:
    """A frontier for people: its time, or what an empty one means."""
    time = frontier.only()
    return "the empty frontier" if time is None else str(time)


def before_since(collection: Collection, asked: Frontier | int) -> BeforeSince:
    """A read at a time whose history is gone."""
    frontier = Antichain.of(asked) if isinstance(asked, int) else asked
    return BeforeSince(
        f'cannot read "{collection.name}" as of {format_frontier(frontier)}',
        detail=f"Its since is {format_frontier(collection.since)}: "
        "earlier times have been compacted together.",
        hint=f"Read as of {format_frontier(collection.since)} or later.",
        collection=collection.name,
        as_of=frontier,
        since=collection.since,
        upper=collection.upper,
    )


def below_upper(collection: Collection, time: int | None) -> BelowUpper:
    """A write at a time that is already complete."""
    return BelowUpper(
        f'cannot write to "{collection.name}" at time {time}',
        detail=f"Its upper is {format_frontier(collection.upper)}: times before that are complete.",
        hint="Write at a time at or beyond upper.",
        collection=collection.name,
        time=time,
        upper=collection.upper,
    )
