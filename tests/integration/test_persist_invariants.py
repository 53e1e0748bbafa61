"""The invariants of a commit: a state that breaks one is refused, by name, before it is stored."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from noonmark.persist.hold import NO_LEASE_MS
from noonmark.persist.log import command as c
from noonmark.persist.log.invariants import InvariantBroken, check
from noonmark.persist.log.machine import apply
from noonmark.persist.log.state import EMPTY, Collection, Garbage, State, schema_to_wire
from noonmark.persist.part.part import Part
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain

SCHEMA = Schema.of(id="bigint")
PART = Part("parts/1/a", 1, 10, 0, 0, 0, time_min=3, time_max=3)


def at(time: int) -> Antichain[int]:
    return Antichain.of(time)


def begun() -> State:
    """A collection with a part, readable from 2 on, held at 4, written up to 8."""
    commands = (
        c.Create("t", (), schema_to_wire(SCHEMA)),
        c.Append(1, 1, 10, 3, 3, 1, (PART,)),
        c.Seal(1, at(8)),
        c.Acquire("reader", 1, at(4), NO_LEASE_MS, 0, "here"),
        c.AllowCompaction(1, at(2)),
    )
    return apply(EMPTY, commands, 0)


def changed(state: State, **fields: object) -> State:
    collections: dict[int, Collection] = {1: msgspec.structs.replace(state.collection(1), **fields)}
    return msgspec.structs.replace(state, collections=collections)


def renamed_alone(state: State) -> State:
    return changed(state, name="u")


def named_twice(state: State) -> State:
    return msgspec.structs.replace(state, names={"t": 1, "u": 1})


def deleted_and_read(state: State) -> State:
    garbage = (Garbage(PART.key, PART.bytes, 1, 1, 0),)
    after = msgspec.structs.replace(state, garbage=garbage)
    return changed(after, batches=(*state.collection(1).batches,))


BROKEN: dict[str, tuple[Callable[[State], State], ...]] = {
    "since_is_the_meet_of_its_bounds": (
        lambda state: changed(state, since=at(3)),
        lambda state: changed(state, allowed=at(5), since=at(5)),  # past a reader's hold
        lambda state: changed(state, allowed=at(3)),  # nobody needs what is before 3
    ),
    "names_and_collections_agree": (renamed_alone, named_twice),
    "no_live_part_is_garbage": (deleted_and_read,),
}


def test_what_the_state_machine_makes_breaks_nothing() -> None:
    state = begun()
    assert (state.collection(1).since, state.collection(1).upper) == (at(2), at(8))
    check(state, state, [1])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_state_is_refused_by_name(name: str) -> None:
    state = begun()
    for broken in BROKEN[name]:
        with pytest.raises(InvariantBroken) as refused:
            check(state, broken(state), [1])
        assert refused.value.fields["invariant"] == name
