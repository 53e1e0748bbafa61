"""A large tick goes the way that the view's own times say is cheaper (`compute/view/cost.py`)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.view.cost import CHANGE_BYTES_MIN, MARGIN, RECOMPUTE_SHARE, Costs, Walk

_SIZES = st.integers(CHANGE_BYTES_MIN, 1 << 40)
_RATES = st.floats(1e-9, 1.0)


@given(st.tuples(_SIZES, _SIZES), st.tuples(_SIZES, _SIZES), st.tuples(_RATES, _RATES))
def test_a_choice_costs_little_more_than_the_cheaper_way(
    seen: tuple[int, int], now: tuple[int, int], rates: tuple[float, float]
) -> None:
    """Law (bounded regret)."""
    (seen_change, seen_whole), (change, whole), (change_rate, rate) = seen, now, rates
    costs = Costs().after("tasks", seen_change, change_rate * seen_change)
    costs = costs.after("hydrate", seen_whole, rate * seen_whole)
    by_change, anew = change_rate * change, rate * whole
    chosen = anew if costs.anew_is_cheaper(change, whole) else by_change
    assert chosen <= min(by_change, anew) / MARGIN * (1 + 1e-9)


def test_a_share_of_the_inputs_decides_before_both_ways_were_taken() -> None:
    whole = 1 << 30
    limit = int(RECOMPUTE_SHARE * whole)
    hydrated = Costs().after("hydrate", whole, 1000.0)
    for costs in (Costs(), hydrated, Costs().after("tasks", limit, 1000.0)):
        assert not costs.anew_is_cheaper(limit, whole)
        assert costs.anew_is_cheaper(limit + 1, whole)


def test_small_changes_say_nothing_of_what_a_byte_costs() -> None:
    hydrated = Costs().after("hydrate", 1 << 30, 1000.0)
    assert hydrated.after("tasks", CHANGE_BYTES_MIN - 1, 50.0) == hydrated
    assert hydrated.after("idle", 1 << 30, 50.0) == hydrated


def test_views_differ_in_what_a_change_costs_them() -> None:
    """A tenth of the inputs: by its changes where those are cheap, anew where they are dear."""
    whole, change = 1 << 30, (1 << 30) // 10
    sums = Costs().after("hydrate", whole, 10_000.0).after("tasks", change, 2_000.0)
    groups = Costs().after("recompute", whole, 10_000.0).after("tasks", change, 20_000.0)
    assert not sums.anew_is_cheaper(change, whole)
    assert groups.anew_is_cheaper(change, whole)


@given(st.floats(0, 1e6), st.integers(0, 10**7), st.integers(0, 10**7))
def test_fewer_updates_are_expected_to_take_less(ms: float, before: int, now: int) -> None:
    """Of a catch-up that took seconds the small tick behind it is not thought to be as slow."""
    expected = Walk(ms, before).expected_ms(now)
    assert expected <= ms
    assert expected == ms or now < before
    assert Walk(8_000.0, 800_000).expected_ms(300) == 3.0
    assert Walk(8_000.0, 300).expected_ms(300) == 8_000.0
