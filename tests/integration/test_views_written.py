"""Views that write collections that exist already: by capability, from one time on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark import errors, persist
from noonmark.compute.layer import Compute
from noonmark.compute.plan.definition import Definition
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.storage import (
    NO_LEASE_MS,
    CollectionDescription,
    ReadCapability,
    Storage,
    WriteCapability,
)
from noonmark.tvc import Antichain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.of(k="bigint", v="integer")
OUT = Schema.of(k="bigint", n="bigint")
COUNTS = Definition.of_sql("counts", "SELECT k, count(*) AS n FROM t GROUP BY k", {"t": SCHEMA})


def refused() -> Any:
    raise AssertionError("nothing is computed here")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        yield Storage(client, lease_ms=NO_LEASE_MS)  # a busy machine loses no right


def table(storage: Storage) -> tuple[ReadCapability, WriteCapability]:
    read, write = storage.create("t", CollectionDescription(SCHEMA), 1)
    rows = [persist.Update((1, 5), 1, 1), persist.Update((2, 5), 2, 1)]
    return read, storage.update_and_downgrade(write, rows, 4)


def at(storage: Storage, id: str, time: int) -> dict[Any, int]:
    return dict(storage.client.create_or_load(id)[1].snapshot(time).result().counts())


@pytest.mark.spark
def test_an_output_with_contents_becomes_the_view(storage: Storage, spark: SparkSession) -> None:
    read, write = table(storage)
    kept, own = storage.create("out", CollectionDescription(OUT), 0)
    was = [persist.Update((1, 1), 0, 1), persist.Update((9, 9), 1, 2)]
    own = storage.update_and_downgrade(own, was, 3)
    compute = Compute(storage, lambda: spark)
    (out,) = compute.maintain_view([read], COUNTS, [own])
    assert out.id == "out"
    compute.tick()
    write = storage.update_and_downgrade(write, [persist.Update((1, 6), 4, 1)], 6)
    compute.tick()
    assert at(storage, "out", 2) == {(1, 1): 1, (9, 9): 2}, "before it begins it is what it was"
    assert at(storage, "out", 3) == {(1, 1): 1, (2, 1): 1}
    assert at(storage, "out", 5) == {(1, 2): 1, (2, 1): 1}
    with pytest.raises(errors.CapabilityInvalid):
        storage.update_and_downgrade(own, [], 7)  # it was given away
    again = Compute(storage, lambda: spark)
    (view,) = again.resume()
    assert view.owned.is_written
    storage.update_and_downgrade(write, [persist.Update((2, 5), 6, -1)], 8)
    again.tick()
    assert at(storage, "out", 7) == {(1, 2): 1}
    again.drop_view("out")
    assert storage.description("out").kind == "table"
    assert at(storage, "out", 7) == {(1, 2): 1}, "what was written stays"
    assert not [each for each in storage.client.state.holds if each.startswith("view/")]
    assert not [name for name in storage.client.state.names if name.startswith("out_")]
    _, mine = storage.acquire_capabilities("out")
    storage.update_and_downgrade(mine, [persist.Update((7, 7), 8, 1)], 9)
    storage.drop(kept)


@pytest.mark.spark
def test_inputs_are_held_as_long_as_a_reader_holds_the_output(
    storage: Storage, spark: SparkSession
) -> None:
    read, write = table(storage)
    kept, own = storage.create("out", CollectionDescription(OUT), 1)
    compute = Compute(storage, lambda: spark)
    (out,) = compute.maintain_view([read], COUNTS, [own], retain_ms=0)
    compute.tick()
    for time in range(4, 10):
        rows = [persist.Update((time, 1), time, 1)]
        write = storage.update_and_downgrade(write, rows, time + 1)
        compute.tick()
        state = storage.client.state
        assert state.collection("out").since.only() == 1, "a reader is there"
        assert state.collection("t").since.only() == 1
    storage.drop(kept, out)
    for time in (10, 11, 12):
        write = storage.update_and_downgrade(write, [persist.Update((0, 1), time, 1)], time + 1)
        compute.tick()
    state = storage.client.state
    since, input_since = state.collection("out").since.only(), state.collection("t").since.only()
    assert since is not None
    assert input_since is not None
    assert 1 < input_since <= since <= 12


def test_what_cannot_be_written_is_refused_and_nothing_is_made(storage: Storage) -> None:
    read, _ = table(storage)
    compute = Compute(storage, refused)
    _, other = storage.create("other", CollectionDescription(Schema.of(k="bigint", n="text")), 0)
    with pytest.raises(errors.DatatypeMismatch, match="does not fit"):
        compute.maintain_view([read], COUNTS, [other])
    _, own = storage.create("out", CollectionDescription(OUT), 0)
    clone = storage.clone(own)
    with pytest.raises(errors.UsageError, match="others"):
        compute.maintain_view([read], COUNTS, [own])
    storage.drop(clone)
    with pytest.raises(errors.UsageError, match="more write capabilities"):
        compute.maintain_view([read], COUNTS, [own, other])
    itself = Definition.of_sql("counts", "SELECT k, n FROM out", {"out": OUT})
    with pytest.raises(errors.UsageError, match="an input and an output"):
        compute.maintain_view([read], itself, [own])
    stale = storage.downgrade(own, 3)
    with pytest.raises(errors.CapabilityInvalid):
        compute.maintain_view([read], COUNTS, [own])
    assert storage.renew(stale) == stale
    assert not [name for name in storage.client.state.names if name.endswith("_errors")]


def test_compute_answers_for_outputs_that_it_writes(storage: Storage) -> None:
    read, _ = table(storage)
    _, own = storage.create("out", CollectionDescription(OUT), 7)
    compute = Compute(storage, refused)
    (out,) = compute.maintain_view([read], COUNTS, [own])
    assert compute.dataflow.views["out"].hydrated_at == 7, "the later of the two frontiers"
    assert compute.acquire_capabilities("out").id == "out"
    compute.subscribe_at(out).cancel()
    with pytest.raises(errors.CapabilityInvalid, match="written by the system alone"):
        storage.acquire_capabilities("out")
    forged = WriteCapability("out", Antichain.of(7), own.token)
    with pytest.raises(errors.CapabilityInvalid, match="maintenance alone"):
        compute.update_and_downgrade(forged, [], 9)
