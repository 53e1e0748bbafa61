"""The laws of ``noonmark.tvc.update`` and the equation of ``noonmark.tvc.description``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import FrontierRegression, InvalidValue
from noonmark.tvc import (
    EMPTY,
    Antichain,
    Description,
    Update,
    advance,
    consolidate,
    differentiate,
    integrate,
    join,
)

Updates = list[Update[str, Any]]
DATA = st.sampled_from("abc")
DIFFS = st.integers(-2, 2)


def updates(universe: list[Any]) -> st.SearchStrategy[Updates]:
    one = st.builds(Update, DATA, st.sampled_from(universe), DIFFS)
    return st.lists(one, max_size=12)


def frontiers(universe: list[Any]) -> st.SearchStrategy[Antichain[Any]]:
    return st.lists(st.sampled_from(universe), max_size=4).map(Antichain)


def summed(*multisets: dict[str, int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for multiset in multisets:
        total.update(multiset)
    return {data: count for data, count in total.items() if count}


@settings(max_examples=50)
@given(data=st.data())
def test_integrate_is_the_sum_of_what_came_before(universe: list[Any], data: st.DataObject) -> None:
    some, others = data.draw(updates(universe)), data.draw(updates(universe))
    for t in universe:
        by_hand = summed(*({u.data: u.diff} for u in some if u.time <= t))
        assert integrate(some, t) == by_hand
        assert integrate(some + others, t) == summed(by_hand, integrate(others, t))


@settings(max_examples=50)
@given(data=st.data())
def test_consolidate_law(universe: list[Any], data: st.DataObject) -> None:
    some = data.draw(updates(universe))
    few = consolidate(some)
    assert all(integrate(few, t) == integrate(some, t) for t in universe)
    assert len({(u.data, u.time) for u in few}) == len(few)
    assert all(u.diff for u in few)
    assert consolidate(few) == few
    assert set(consolidate(data.draw(st.permutations(some)))) == set(few)


@settings(max_examples=50)
@given(data=st.data())
def test_advance_law(universe: list[Any], data: st.DataObject) -> None:
    some, since = data.draw(updates(universe)), data.draw(frontiers(universe))
    advanced = advance(some, since)
    for t in universe:
        if since.less_equal(t):
            assert integrate(advanced, t) == integrate(some, t)
    assert advance(advanced, since) == advanced
    assert advance(some, EMPTY) == []


@settings(max_examples=50)
@given(data=st.data())
def test_advance_lets_what_cancels_cancel(universe: list[Any], data: st.DataObject) -> None:
    """In `since` there is nothing to see iff there is nothing left after consolidation."""
    some, since = data.draw(updates(universe)), data.draw(frontiers(universe))
    unseen = all(integrate(some, t) == {} for t in universe if since.less_equal(t))
    assert (consolidate(advance(some, since)) == []) == unseen


@settings(max_examples=50)
@given(data=st.data())
def test_differentiate_and_integrate_are_inverse(universe: list[Any], data: st.DataObject) -> None:
    multisets = st.dictionaries(DATA, st.integers(-2, 3).filter(bool))
    chosen = data.draw(st.lists(st.sampled_from(universe), unique=True, max_size=6))
    history = [(t, data.draw(multisets)) for t in chosen]
    for t, multiset in history:
        assert integrate(differentiate(history), t) == multiset


@settings(max_examples=50)
@given(data=st.data())
def test_integrating_everywhere_and_differentiating_gives_the_updates_back(
    universe: list[Any], data: st.DataObject
) -> None:
    some = data.draw(updates(universe))
    history = [(t, integrate(some, t)) for t in universe]
    assert set(differentiate(history)) == set(consolidate(some))


@settings(max_examples=50)
@given(data=st.data())
def test_description_equation(universe: list[Any], data: st.DataObject) -> None:
    """Batches that follow each other, each advanced by its own since, merge to one that holds."""
    every = data.draw(updates(universe))
    lower = data.draw(frontiers(universe))
    middle = lower.join(data.draw(frontiers(universe)))
    upper = middle.join(data.draw(frontiers(universe)))
    first = Description(lower, middle, data.draw(frontiers(universe)))
    second = Description(middle, upper, data.draw(frontiers(universe)))
    batches = [advance([u for u in every if d.contains(u.time)], d.since) for d in (first, second)]
    merged = first.merge(second)
    holds = [*batches[0], *batches[1]]
    described = [u for u in every if merged.contains(u.time)]
    for t in universe:
        if merged.since.less_equal(t):
            assert integrate(holds, t) == integrate(described, t)
    assert first.is_empty() == (not any(first.contains(t) for t in universe))


def test_a_batch_does_not_end_before_it_starts() -> None:
    with pytest.raises(FrontierRegression, match="cannot end"):
        Description(Antichain.of(3), Antichain.of(2), Antichain.of(0))


def test_only_batches_that_follow_merge() -> None:
    zero, two, four = (Antichain.of(t) for t in (0, 2, 4))
    with pytest.raises(InvalidValue, match="does not follow"):
        Description(zero, two, zero).merge(Description(four, EMPTY, zero))


def test_a_join_that_is_not_given_adds_up(universe: list[Any]) -> None:
    """The warning in `differentiate`: two changes are both seen where their times join."""
    for a in universe:
        for b in universe:
            both = join(a, b)
            if both is not None and both not in (a, b):
                made = differentiate([(a, {"x": 1}), (b, {"x": 1})])
                assert integrate(made, both) == {"x": 2}


def test_the_worked_example_of_the_formalism() -> None:
    updates = [
        Update("ann 5", 10, +1),
        Update("ann 5", 20, -1),
        Update("ann 3", 20, +1),
        Update("bob 2", 20, +1),
        Update("ann 3", 30, -1),
    ]
    contents = [(10, {"ann 5": 1}), (20, {"ann 3": 1, "bob 2": 1}), (30, {"bob 2": 1})]
    assert differentiate(contents) == updates
    assert integrate(updates, 19) == {"ann 5": 1}
    assert consolidate(advance(updates, Antichain.of(25))) == [
        Update("ann 3", 25, +1),
        Update("bob 2", 25, +1),
        Update("ann 3", 30, -1),
    ]
