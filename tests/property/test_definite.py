"""The laws of `noonmark.persist.log.definite`, and of the state machine that keeps them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import NoonmarkError
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import (
    ErrorChange,
    Errors,
    Failure,
    answered_from,
    changed,
    combined,
    compacted,
    error_at,
    first_error,
)
from noonmark.persist.log.machine import apply
from noonmark.persist.log.state import EMPTY, State, WireColumn
from noonmark.persist.read.plan import Query, plan_read
from noonmark.tvc import Antichain

TIMES = range(12)
failures = st.sampled_from([None, Failure("55000", "one"), Failure("55000", "two")])
written = st.lists(st.tuples(st.integers(0, 11), failures), max_size=8)


@st.composite
def histories(draw: st.DrawFn) -> Errors:
    """Changes as a collection comes to have them."""
    made: Errors = ()
    for time, error in sorted(draw(written), key=lambda each: each[0]):
        made = changed(made, time, error)
    return made


def said(errors: Errors) -> list[Failure | None]:
    """The definition: what the last change at or before each time says."""
    return [next((e.error for e in reversed(errors) if e.time <= t), None) for t in TIMES]


@given(written)
def test_the_last_word_about_a_time_holds(history: list[tuple[int, Failure | None]]) -> None:
    made: Errors = ()
    wanted: list[Failure | None] = [None for _ in TIMES]
    for time, error in sorted(history, key=lambda each: each[0]):
        made = changed(made, time, error)
        wanted[time:] = [error] * (len(wanted) - time)
    assert [error_at(made, time) for time in TIMES] == wanted == said(made)
    assert all(one.time < two.time for one, two in pairwise(made))


@given(histories(), st.integers(0, 11))
def test_compaction_changes_no_time_that_can_be_read(errors: Errors, since: int) -> None:
    assert said(compacted(errors, since))[since:] == said(errors)[since:]
    assert len([e for e in compacted(errors, since) if e.time <= since]) <= 1


@given(histories(), st.integers(0, 11), st.integers(0, 11))
def test_the_first_error_of_a_range(errors: Errors, first: int, last: int) -> None:
    held = [t for t in TIMES[first : last + 1] if said(errors)[t] is not None]
    found = first_error(errors, first, last)
    assert (found is None) == (not held)
    if found is not None:
        assert max(found.time, first) == held[0]
        assert found.error == said(errors)[held[0]]
    again = [t for t in TIMES[first:] if said(errors)[t] is None]
    assert answered_from(errors, first) == next(iter(again), None)


@given(histories(), histories(), st.lists(st.integers(1, 3), min_size=1, max_size=6))
def test_a_view_is_in_error_exactly_where_an_input_is(
    one: Errors, two: Errors, steps: list[int]
) -> None:
    """Tick by tick, however the times are cut into ticks."""
    own: Errors = ()
    lower = 0
    for step in steps:
        for change in combined([("a", one), ("b", two)], own, lower, lower + step):
            own = changed(own, change.time, change.error)
        lower += step
    for time in TIMES[:lower]:
        inputs = [e.message for e in (said(one)[time], said(two)[time]) if e is not None]
        found = error_at(own, time)
        assert (found.message if found else None) == next(iter(inputs), None)
        assert found is None or found.origin == ("a" if said(one)[time] is not None else "b")


FAILURE = Failure("55000", "gone")
commands = st.lists(
    st.one_of(
        st.builds(c.SetError, st.just(1), st.integers(0, 11), st.sampled_from([None, FAILURE])),
        st.builds(c.Seal, st.just(1), st.integers(0, 11).map(Antichain.of)),
        st.builds(c.AllowCompaction, st.just(1), st.integers(0, 11).map(Antichain.of)),
    ),
    max_size=20,
)


@given(commands)
def test_what_was_answered_stays_the_answer(history: list[c.AnyCommand]) -> None:
    """Whatever is committed: at a complete time a read says what it said before, or nothing."""
    state: State = apply(EMPTY, (c.Create("t", (), (WireColumn("a", "integer", True),)),), 0)
    answers: dict[int, str | None] = {}
    for command in history:
        try:
            state = apply(state, (command,), 0)
        except NoonmarkError:
            continue
        for time, answer in _answers(state).items():
            assert answers.setdefault(time, answer) == answer
    assert all(isinstance(each, ErrorChange) for each in state.collection("t").errors)


def _answers(state: State) -> dict[int, str | None]:
    """What a read says at each time that can be read."""
    collection = state.collection("t")
    since, upper = collection.since.only() or 0, collection.upper.only() or 0
    made: dict[int, str | None] = {}
    for time in range(since, upper):
        try:
            plan_read(0, collection, Query(time))
            made[time] = None
        except NoonmarkError as error:
            made[time] = error.message
    return made
