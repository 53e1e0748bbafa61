"""The examples of the reclocking document, value for value."""

from __future__ import annotations

from typing import Any

import pytest

from noonmark.errors import BeforeSince, NotYetComplete
from noonmark.remap import Remap, begin, mint, reclock_updates
from noonmark.tvc import Antichain, Partitioned, Update, integrate

PM1, PM2, PM3, PM4 = 13, 14, 15, 16


def minted(first: Antichain[Any], *later: tuple[int, Antichain[Any]]) -> tuple[Any, Remap[Any]]:
    """The updates that begin at 1pm and later bindings add, and the remap that they make."""
    updates, remap = begin(first, PM1)
    for time, probe in later:
        more, remap = mint(remap, probe, time)
        updates += more
    return updates, remap


def observed(*uppers: int) -> tuple[Any, Remap[int]]:
    frontiers = [Antichain.of(upper) for upper in uppers]
    return minted(frontiers[0], *zip((PM2, PM3, PM4), frontiers[1:], strict=True))


def part(number: int, offset: int) -> Partitioned:
    return Partitioned.at(f"part{number}", offset)


def test_remap_of_topic_a() -> None:
    updates, remap = observed(0, 1, 3, 6)
    assert updates == remap.updates()
    assert updates == [
        (0, PM1, +1),
        (0, PM2, -1),
        (1, PM2, +1),
        (1, PM3, -1),
        (3, PM3, +1),
        (3, PM4, -1),
        (6, PM4, +1),
    ]


def test_remap_of_topic_b_and_as_of() -> None:
    updates, remap = observed(0, 100, 250, 1000)
    assert updates == [
        (0, PM1, +1),
        (0, PM2, -1),
        (100, PM2, +1),
        (100, PM3, -1),
        (250, PM3, +1),
        (250, PM4, -1),
        (1000, PM4, +1),
    ]
    assert integrate(updates, PM3) == {250: 1}
    assert remap.frontier_at(PM3) == Antichain.of(250)


def test_topic_a_reclocked() -> None:
    _, remap = observed(0, 1, 3, 6)
    topic_a = [Update(f"m{offset}", offset, +1) for offset in range(6)]
    assert reclock_updates(topic_a, remap.bindings) == [
        ("m0", PM2, +1),
        ("m1", PM3, +1),
        ("m2", PM3, +1),
        ("m3", PM4, +1),
        ("m4", PM4, +1),
        ("m5", PM4, +1),
    ]


def test_the_join_at_2pm_has_what_both_topics_held_at_2pm() -> None:
    contents = []
    for name, uppers, size in (("a", (0, 1, 3, 6), 6), ("b", (0, 100, 250, 1000), 1000)):
        _, remap = observed(*uppers)
        raw = [Update(f"{name}{offset}", offset, +1) for offset in range(size)]
        contents.append(integrate(reclock_updates(raw, remap.bindings), PM2))
    assert contents[0] == {"a0": 1}
    assert contents[1] == {f"b{offset}": 1 for offset in range(100)}


def test_two_partitions() -> None:
    updates, remap = minted(
        Antichain([part(0, 0), part(1, 0)]),
        (PM2, Antichain([part(0, 3), part(1, 1)])),
        (PM3, Antichain([part(0, 4), part(1, 3)])),
    )
    assert sorted(updates, key=lambda u: u.time) == updates
    assert set(updates) == {
        (part(0, 0), PM1, +1),
        (part(1, 0), PM1, +1),
        (part(0, 0), PM2, -1),
        (part(1, 0), PM2, -1),
        (part(0, 3), PM2, +1),
        (part(1, 1), PM2, +1),
        (part(0, 3), PM3, -1),
        (part(1, 1), PM3, -1),
        (part(0, 4), PM3, +1),
        (part(1, 3), PM3, +1),
    }
    topic = [Update(name, part(0, offset), +1) for offset, name in enumerate("abcd")]
    topic += [Update(name, part(1, offset), +1) for offset, name in enumerate("efgh")]
    reclocked = reclock_updates(topic, remap.bindings)
    assert set(reclocked) == {
        ("a", PM2, +1),
        ("b", PM2, +1),
        ("c", PM2, +1),
        ("e", PM2, +1),
        ("d", PM3, +1),
        ("f", PM3, +1),
        ("g", PM3, +1),
    }
    assert len(reclocked) == 7  # h is still beyond the latest frontier


def test_a_remap_answers_only_where_it_is_certain() -> None:
    _, remap = observed(0, 1, 3, 6)
    with pytest.raises(BeforeSince, match="is gone"):
        remap.frontier_at(PM1 - 1)
    with pytest.raises(NotYetComplete, match="still open"):
        remap.frontier_at(PM4 + 1)
