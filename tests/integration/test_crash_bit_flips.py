"""C4 in small: changed objects are noticed; ``tests/prove/c4_bit_flips.py`` has the full number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from noonmark.persist.log import frame
from noonmark.persist.part import pages, part, store
from support.store.damage import Damage
from support.store.history import Violation
from support.store.mutations import KINDS, Mutations
from support.store.power_loss import memory_folder

MUTATIONS = 120
DAMAGES = 100


@pytest.fixture
def mutations() -> Iterator[Mutations]:
    with memory_folder() as folder:
        yield Mutations(folder, seed=5)


def test_every_read_notices_or_gives_the_answer_it_gave_before(mutations: Mutations) -> None:
    for _ in range(MUTATIONS):
        mutations.mutate()
    assert mutations.outcomes["noticed"] > MUTATIONS / 3
    assert {how.split()[0] for how in mutations.faults} == set(KINDS)
    assert {how.split()[1] for how in mutations.faults} == {
        "flip",
        "cut",
        "empty",
        "extend",
        "swap",
    }


def test_whatever_is_done_to_any_object_of_a_location_is_seen() -> None:
    """Also to the catalog, to the oracle's log, and when the newest entry of a log is gone."""
    with memory_folder() as folder:
        whole = Damage(folder, seed=5)
        for kind, names in whole.kinds.items():
            whole.try_with(f"{kind} remove", {names[-1]: None})
            whole.try_with(f"{kind} extend", {names[0]: whole.bytes[names[0]] + b"x"})
        for _ in range(DAMAGES):
            whole.damage()
    assert {how.rpartition(" ")[0] for how in whole.faults} == {
        "log", "floor", "count", "rollup", "part", "oracle log", "oracle floor", "oracle count",
    }  # fmt: skip
    assert whole.outcomes["not needed"] < DAMAGES / 5


@pytest.mark.parametrize("kind", ["log", "rollup"])
def test_the_newest_object_of_its_kind_cannot_be_emptied_in_silence(
    mutations: Mutations, kind: str
) -> None:
    mutations.try_with("empty", {mutations.newest(kind): b""})
    assert mutations.outcomes == {"noticed": 1}


def mutate_often(mutations: Mutations) -> None:
    for _ in range(MUTATIONS):
        mutations.mutate()


def test_a_product_that_believes_its_frames_would_be_caught(
    mutations: Mutations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "_checksum", lambda *_: AnySum())
    with pytest.raises(Violation):
        mutate_often(mutations)


def test_a_product_that_believes_its_parts_would_be_caught(
    mutations: Mutations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believe(data: bytes, _: part.Part, columns: Sequence[str] | None = None) -> pa.Table:
        return part.read_parquet(data, columns)

    monkeypatch.setattr(store, "decode_part", believe)
    with pytest.raises(Violation):
        mutate_often(mutations)


def test_a_product_that_believes_its_pages_would_be_caught(
    mutations: Mutations, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, data = mutations.largest("part")
    damaged = bytearray(data)
    for place in range(100, len(data) * 9 // 10, 50):
        damaged[place] ^= 16
    mutations.try_with("damaged pages", {name: bytes(damaged)})
    assert mutations.outcomes == {"noticed": 1}
    monkeypatch.setattr(pages.zlib, "crc32", lambda _: AnySum())
    with pytest.raises(Violation):
        mutations.try_with("damaged pages", {name: bytes(damaged)})


class AnySum(int):
    """A checksum that is equal to every other."""

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __hash__ = int.__hash__
