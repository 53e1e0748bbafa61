"""Resumption: where ingestion starts again, as a time and, through the remap, as offsets.

The *timestamp resumption frontier* R is the meet of the uppers of every collection that the source
feeds, the remap among them: each time not in R is complete, and durable, in all of them.

The *offset resumption frontier* G is what those times cover of the source. On the timeline, with
R = {r}, it is G = F(r - 1). It may be released upstream: what is not in G is never read again.

Law (safe): s is not in G iff s has a time, and that time is not in R: exactly the records that are
durable everywhere are given up.
Law (progress): if R' is at or beyond R, then G' is at or beyond G.
Law (compact): `compact(remap, R)` gives every record in G the time that `remap` gives it, and has
the same G. It keeps the binding that holds at r - 1, and not just those from r on: what has to be
read at r starts where r - 1 ended.

At r = since there is no r - 1. That is the state of a source that has begun and written nothing; it
resumes where it started, at F(since). Only `compact` moves since, and never up to r, so this is the
only way to get there. Inverting needs a total order, as here: with a partial one a record may
have several times, durable one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from noonmark.errors import BeforeSince, NotYetComplete, UsageError
from noonmark.remap.binding import Binding, Remap, S, T
from noonmark.tvc import Antichain


def timestamp_resumption(uppers: Iterable[Antichain[T]]) -> Antichain[T]:
    """The meet of the uppers of all collections of one source; there must be one."""
    known = tuple(uppers)
    if not known:
        raise UsageError(
            "no uppers, no resumption frontier: the meet of none would be the empty one"
        )
    return reduce(Antichain.meet, known)


def offset_resumption(remap: Remap[S], resumption: Antichain[int]) -> Antichain[S]:
    """The frontier of the source that is durable everywhere: resume from it, release it."""
    return remap.frontier_at(_last_durable(remap, resumption))


def compact(remap: Remap[S], resumption: Antichain[int]) -> Remap[S]:
    """Forget which bindings led to the last durable time; the since becomes that time."""
    time = _last_durable(remap, resumption)
    later = tuple(binding for binding in remap.bindings if binding.time > time)
    return Remap((Binding(time, remap.frontier_at(time)), *later), remap.upper)


def _last_durable(remap: Remap[S], resumption: Antichain[int]) -> int:
    """The last time that is durable and bound; the since when none is."""
    if not resumption.at_or_beyond(remap.since):
        raise BeforeSince(
            f"the remap cannot say where {resumption!r} was in the source",
            detail=f"Its since is {remap.since!r}.",
        )
    if not remap.upper.at_or_beyond(resumption):
        raise NotYetComplete(
            f"the remap ends at {remap.upper!r}, before the resumption frontier {resumption!r}",
            hint="Its own upper belongs in the meet.",
        )
    since = remap.bindings[0].time
    end = resumption.only()
    return remap.bindings[-1].time if end is None else max(since, end - 1)
