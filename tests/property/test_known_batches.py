"""What both ends of a line know: messages are what was sent, and a batch goes once."""

from __future__ import annotations

import pickle
from random import Random

import msgspec
import pytest

from noonmark.compute.runner.resident import known
from noonmark.compute.runner.resident.known import Telling, Told
from noonmark.persist.log.state import Batch, Collection, Inline


def batch(number: int, size: int = 2_000) -> Batch:
    inline = Inline(bytes([number % 251]) * size, 0)
    return Batch(number, 10, size, number, number, 10, inline=inline)


def collection(name: str, batches: tuple[Batch, ...]) -> Collection:
    return Collection(1, name, (), (), batches=batches)


@pytest.mark.parametrize("bytes_max", [1, 5_000, 1 << 20])
@pytest.mark.parametrize("seed", range(5))
def test_messages_arrive_as_they_were_sent(
    seed: int, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches come, are named again, go and come back; whatever the ends have room for."""
    monkeypatch.setattr(known, "BYTES_MAX", bytes_max)
    chance, telling, told = Random(seed), Telling(), Told()
    pool = [batch(number, chance.randrange(3_000)) for number in range(20)]
    for at in range(60):
        pool.append(batch(20 + at))
        some = tuple(chance.sample(pool, chance.randrange(12)))
        message = [("view", collection("a", some)), {"b": collection("b", some[::2]), "n": [at]}]
        assert told.loads(telling.dumps(message)) == message
        assert len(telling._numbers) == len(telling._names._known) == len(told._names._known)
        assert telling._names._size <= bytes_max or len(telling._numbers) == 1


def test_a_batch_goes_once() -> None:
    telling, told = Telling(), Told()
    batches = tuple(batch(number) for number in range(100))
    first = telling.dumps(collection("a", batches))
    more = collection("a", (*batches, batch(100)))
    second = telling.dumps(more)
    assert len(first) < 1.1 * len(pickle.dumps(more))
    assert len(second) < len(first) / 20
    held = told.loads(first)
    found = told.loads(second)
    assert found == more
    assert all(a is b for a, b in zip(held.batches, found.batches, strict=False))


def test_equal_batches_are_told_apart() -> None:
    """What is forgotten on one end is looked for by identity: an equal batch is another one."""
    telling, told = Telling(), Told()
    one = batch(1)
    other = msgspec.structs.replace(one)
    for each in (one, other, one):
        assert told.loads(telling.dumps(each)) == each
    assert len(telling._numbers) == 2
