"""The laws of `noonmark.rows.label`: there is room everywhere, and what is stored is in order."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import InvalidValue
from noonmark.rows.label import Label, first_places, place_between


@given(
    st.integers(0, 40),
    st.lists(st.sampled_from(["first", "last", "low", "high"]) | st.floats(0, 1)),
)
def test_there_is_room_before_and_after_every_label(count: int, steps: list[str | float]) -> None:
    """Law (room) and law (stored order), however labels come."""
    places = first_places(count)
    for step in steps:
        spots = {
            "first": 0,
            "last": len(places),
            "low": min(1, len(places)),
            "high": len(places) - 1,
        }
        at = spots[step] if isinstance(step, str) else round(step * len(places))
        at = max(at, 0)
        low = places[at - 1] if at else None
        made = place_between(low, places[at] if at < len(places) else None)
        assert 0 not in made
        assert made[-1] > 1
        places.insert(at, made)
    assert places == sorted(set(places))
    stored = [Label(text, place).stored for place in places for text in ("", "a", "\x01", "é")]
    found = [(Label.of(each).place, str(Label.of(each))) for each in sorted(stored)]
    assert [place for place, _ in found] == [place for place in places for _ in range(4)]


def test_a_label_is_equal_to_its_text_and_keeps_its_place() -> None:
    label = pickle.loads(pickle.dumps(Label("sad", b"\x10")))
    assert (label, label.place, hash(label)) == ("sad", b"\x10", hash("sad"))
    assert Label.of(label.stored).stored == b"\x10\x00sad"


@pytest.mark.parametrize("stored", [b"", b"\x00sad", b"sad"])
def test_what_is_no_label_is_refused(stored: bytes) -> None:
    with pytest.raises(InvalidValue):
        Label.of(stored)
