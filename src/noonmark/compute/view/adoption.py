"""Views that another version made: what they lack is made beside what they have.

What a view needs, and what that is called, is a matter of the version that maintains it. A version
that needs more, or calls it otherwise, finds views that lack it. It takes them up in two steps, and
reads of a view go on meanwhile: its rows, its errors and its frontiers stay as they are.

    adopt      one commit of the control plane. Each arrangement that the view lacks comes to life
               at the last time of the view, or the view takes part in one that is known there;
               holds get the names that they have now; arrangements that no view needs any more go.
    backfill   the contents of what came to life at that time, computed from the inputs: the view
               still holds them there. Then it ticks as ever.

Law: after `adopt` a view has every arrangement that it needs and holds it at its last time, and has
no other; a second `adopt` changes nothing. A crash between the two steps leaves arrangements that
are behind their view, and the next process fills them.

Where it runs: driver; the control plane alone.
"""

from __future__ import annotations

from noonmark.compute.plan.naming import former_hold_id, hold_id
from noonmark.compute.view.owned import Owned, held_by_others, is_arrangement
from noonmark.errors import NameTaken, UnknownCollection, UsageError
from noonmark.persist.log import command as c
from noonmark.persist.log.state import State
from noonmark.storage.transaction import reading

#: How often it is tried while others change the same: a user who asks EXPLAIN, another view.
_TRIES_MAX = 8


def adopt(owned: Owned) -> None:
    """Give a view what it lacks; nothing is to be done for one of this version.

    The view must be there. One that is complete for ever needs nothing.
    """
    for last in range(1, _TRIES_MAX + 1):
        commands = adoption(owned)
        if not commands:
            return
        try:
            owned.client.submit(commands).result()
        except (NameTaken, UnknownCollection, UsageError):  # somebody was quicker
            if last == _TRIES_MAX:
                raise


def adoption(owned: Owned) -> c.Transaction:
    """What gives a view what it lacks, in one commit; nothing if it lacks nothing."""
    state = owned.client.state
    upper = state.collection(owned.name).upper.only()
    if upper is None:
        return ()
    as_of = upper if upper == owned.first_time else upper - 1
    commands: list[c.AnyCommand] = []
    for spec, has in list(owned.by_spec.items()):
        if is_arrangement(state, has.name) and hold_id(owned.name, has.name) in state.holds:
            continue
        owned.by_spec[spec] = owned.kept(state, spec, as_of)
        commands += owned.arrangement(state, owned.by_spec[spec], as_of, commands)
    return (*commands, *_renamed_holds(owned, state), *_unneeded(owned, state))


def _renamed_holds(owned: Owned, state: State) -> list[c.AnyCommand]:
    """The holds on what is read, under the names that they have now."""
    made: list[c.AnyCommand] = []
    for name in (*owned.inputs, owned.name):
        old, new = former_hold_id(owned.name, name), hold_id(owned.name, name)
        held = state.holds.get(old)
        if old == new or held is None or held.collection != state.collection(name).id:
            continue
        if new not in state.holds:
            made.append(reading(owned.client, new, held.collection, held.frontier))
        made.append(c.Release(old))
    return made


def _unneeded(owned: Owned, state: State) -> list[c.AnyCommand]:
    """What ends the part of a view in arrangements that it does not need any more."""
    needed = {each.name for each in owned.by_spec.values()}
    stale = {
        hold: name
        for hold, name in owned.all_holds(state).items()
        if name not in needed and is_arrangement(state, name)
    }
    others = held_by_others(state, stale)
    refs = {state.collection(name).id for name in stale.values()}
    return [*map(c.Release, stale), *map(c.Drop, sorted(refs - others))]
