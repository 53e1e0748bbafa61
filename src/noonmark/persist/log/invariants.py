"""What holds of every state, checked at the one place where states are made.

Each invariant is a named predicate over the state before, the state after and the collections
that changed. A broken one is a defect of ours: the commit is refused before anything is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from noonmark.errors import IntegrityError
from noonmark.persist.log.definite import compacted
from noonmark.persist.log.state import Collection, Frontier, State
from noonmark.tvc import EMPTY

Predicate = Callable[[Collection | None, Collection], bool]


class InvariantBroken(IntegrityError):
    """A transition that would have broken a named invariant; nothing was stored."""

    id = "invariant_broken"
    sqlstate = "XX000"


def since_not_beyond_upper(_: Collection | None, after: Collection) -> bool:
    """``since <= upper``, and equality is legal: a new collection has no readable time yet."""
    return after.upper.at_or_beyond(after.since)


def frontiers_never_go_back(before: Collection | None, after: Collection) -> bool:
    """At or beyond, not strictly: a transaction may leave a frontier where it was."""
    return before is None or (
        after.since.at_or_beyond(before.since)
        and after.upper.at_or_beyond(before.upper)
        and after.allowed.at_or_beyond(before.allowed)
    )


def batch_ids_are_unique(before: Collection | None, after: Collection) -> bool:
    """Each id is less than the next one to be given, strictly, and none is given twice."""
    if before is not None and after.batches is before.batches:
        return True
    ids = [batch.id for batch in after.batches]
    return len(set(ids)) == len(ids) and all(id_ < after.next_batch for id_ in ids)


def batches_are_well_formed(before: Collection | None, after: Collection) -> bool:
    """A new batch has rows, in parts or inline but not both, written with a schema we know."""
    if before is not None and after.batches is before.batches:
        return True
    known = {batch.id for batch in before.batches} if before else set()
    for batch in after.batches:
        if batch.id in known:
            continue
        if batch.rows <= 0 or batch.time_min > batch.time_max:
            return False
        if (batch.inline is None) == (not batch.parts):
            return False
        ids = [part.schema_id for part in batch.parts]
        if batch.inline is not None:
            ids.append(batch.inline.schema_id)
        if any(not 0 <= id_ < len(after.schemas) for id_ in ids):
            return False
    return True


def rewriting_conserves(before: Collection | None, after: Collection) -> bool:
    """What replaces batches has the same sum of diffs, unless the collection is closed."""
    if before is None or after.batches is before.batches or after.since.is_empty():
        return True
    kept = {batch.id for batch in after.batches}
    removed = [batch for batch in before.batches if batch.id not in kept]
    if not removed:
        return True
    known = {batch.id for batch in before.batches}
    added = [batch for batch in after.batches if batch.id not in known]
    return sum(b.diff_sum for b in removed) == sum(b.diff_sum for b in added)


def schemas_only_grow(before: Collection | None, after: Collection) -> bool:
    """Old parts refer to schemas by position, so none may move."""
    return before is None or after.schemas[: len(before.schemas)] == before.schemas


def errors_ascend(_: Collection | None, after: Collection) -> bool:
    """Times ascend, strictly: at one time a collection is in one error, or in none."""
    pairs = zip(after.errors, after.errors[1:], strict=False)
    return all(one.time < two.time and one.error != two.error for one, two in pairs)


def errors_stay_what_they_were(before: Collection | None, after: Collection) -> bool:
    """At a complete time that can be read, a collection is in the same error as before.

    Before upper, strictly: upper itself is not complete, and an error may still begin there.
    """
    if before is None or before.errors is after.errors:
        return True
    since, upper = after.since.only(), before.upper.only()
    kept = [compacted(each.errors, since) for each in (before, after)]
    one, two = ([e for e in errors if upper is None or e.time < upper] for errors in kept)
    return one == two


def since_is_the_meet_of_its_bounds(
    before: Collection | None, after: Collection, held: Frontier
) -> bool:
    """Law (since) of `machine`: allowed, upper and read holds, unless since is beyond that already.

    Equal, not merely at or before: what nobody needs is let go in the commit that lets it go.
    """
    bound = after.allowed.meet(after.upper).meet(held)
    if after.since == bound:
        return True
    stays = before is not None and after.since == before.since
    return stays and not bound.at_or_beyond(after.since)


def names_and_collections_agree(_: State, after: State, ref: int) -> bool:
    """A collection is found by its name, and every name leads to a collection."""
    found = after.collections[ref]
    return after.names.get(found.name) == ref and len(after.names) == len(after.collections)


def no_live_part_is_garbage(before: State, after: State, ref: int) -> bool:
    """What is listed to be deleted is in no batch: a reader would find it gone."""
    found, earlier = after.collections[ref], before.collections.get(ref)
    if not after.garbage or (earlier is not None and earlier.batches is found.batches):
        return True
    garbage = {each.key for each in after.garbage if each.collection == ref}
    return not any(part.key in garbage for batch in found.batches for part in batch.parts)


#: Those of a collection and of what the state says of it elsewhere.
OF_STATE: tuple[Callable[[State, State, int], bool], ...] = (
    names_and_collections_agree,
    no_live_part_is_garbage,
)

INVARIANTS: tuple[Predicate, ...] = (
    since_not_beyond_upper,
    frontiers_never_go_back,
    batch_ids_are_unique,
    batches_are_well_formed,
    rewriting_conserves,
    schemas_only_grow,
    errors_ascend,
    errors_stay_what_they_were,
)


def check(before: State, after: State, touched: Iterable[int]) -> None:
    """Raise `InvariantBroken` for the first invariant that a changed collection breaks."""
    changed = [ref for ref in touched if ref in after.collections]
    held = dict.fromkeys(changed, EMPTY)
    for hold in after.holds.values():
        if hold.collection in held and not hold.writes:
            held[hold.collection] = held[hold.collection].meet(hold.frontier)
    for ref in changed:
        collection = after.collections[ref]
        earlier = before.collections.get(ref)
        for invariant in INVARIANTS:
            if not invariant(earlier, collection):
                raise _broken(invariant, collection)
        if not since_is_the_meet_of_its_bounds(earlier, collection, held[ref]):
            raise _broken(since_is_the_meet_of_its_bounds, collection)
        for law in OF_STATE:
            if not law(before, after, ref):
                raise _broken(law, collection)


def _broken(invariant: Callable[..., bool], collection: Collection) -> InvariantBroken:
    return InvariantBroken(
        f'invariant "{invariant.__name__}" would be broken for "{collection.name}"',
        detail=invariant.__doc__,
        hint="This is a defect in Noonmark; please report it.",
        collection=collection.name,
        invariant=invariant.__name__,
    )
