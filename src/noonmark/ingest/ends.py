"""What ends the outputs of a source, as definite errors of their collections.

A source says that an output has ended in two ways: by what it has bound (`HasEnds`), which has the
time of its binding; and by error records that `_ends` marks, which have the times of their offsets.
Of several the first one counts: its time is from when on the collection is not what upstream has.

Law (exact): at every time before it the collection is what upstream had; from it on it is in error,
until somebody takes that back: an output that has ended never goes on by itself.
Law (again): what was bound while nobody made errors of it (by an earlier version) ends the
collection at the first time that is not complete.

Where it runs: driver; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from noonmark.ingest.task import Row
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import Failure, error_at
from noonmark.persist.log.state import Collection
from noonmark.remap.binding import Remap
from noonmark.source.contract import NO_OUTPUT, HasEnds, Source
from noonmark.tvc import Partitioned

SQLSTATE = "55000"

#: What to do about it: the collection, and whether the source as a whole has ended.
Remedy = Callable[[str, bool], str]


def create_again(collection: str, is_whole: bool) -> str:  # noqa: ARG001 - a `Remedy`
    """The remedy where there is no better one."""
    return "Make another source beside it, let its readers use that, and drop this one."


@dataclass(frozen=True)
class Ended:
    """An output, or `NO_OUTPUT` for all, cannot be followed from a time on."""

    output: int
    time: int
    reason: str


def bound(source: Source, remap: Remap[Partitioned]) -> list[Ended]:
    """What the bindings say: each end once, at the first binding that has it."""
    if not isinstance(source, HasEnds):
        return []
    first: dict[int, Ended] = {}
    for time, frontier in remap.bindings:
        for output, reason in ({} if frontier.is_empty() else source.ended(frontier)).items():
            first.setdefault(output, Ended(output, time, reason))
    return list(first.values())


def met(written: Iterable[Row], outputs: Sequence[int]) -> list[Ended]:
    """What tasks met among the records; `outputs` are those of the feeds, in their order."""
    made = []
    for row in written:
        at = row["feed"]
        for each in row.get("ended") or ():
            output = NO_OUTPUT if at == NO_OUTPUT else outputs[at]
            made.append(Ended(output, each["time"], each["reason"]))
    return made


def end_commands(
    source: str,
    ends: Iterable[Ended],
    collections: Mapping[int, Collection],
    remedy: Remedy,
) -> list[c.SetError]:
    """The commands that put the collections of outputs that have ended into error."""
    found: dict[int, Ended] = {}
    for end in sorted(ends, key=lambda each: each.time):
        for output in collections if end.output == NO_OUTPUT else (end.output,):
            found.setdefault(output, end)
    made = []
    for output, end in found.items():
        collection = collections.get(output)
        if collection is None:
            continue  # nobody reads that output any more
        upper = collection.upper.only()
        time = end.time if upper is None else max(end.time, upper)
        if error_at(collection.errors, time) is not None:
            continue
        failure = Failure(
            SQLSTATE,
            end.reason,
            f'Source "{source}" cannot follow it any more.',
            remedy(collection.name, end.output == NO_OUTPUT),
            collection.name,
        )
        made.append(c.SetError(collection.id, time, failure))
    return made
