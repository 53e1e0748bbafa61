"""The Compute layer's calls: what is durable on return, what is refused. No Spark is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noonmark import errors, persist
from noonmark.compute.layer import Compute
from noonmark.compute.plan.definition import Definition
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.storage import CollectionDescription, ReadCapability, Storage

SCHEMA = Schema.of(k="bigint", v="integer")
COUNTS = Definition.of_sql("counts", "SELECT k, count(*) AS n FROM t GROUP BY k", {"t": SCHEMA})
TOPS = Definition.of_sql("tops", "SELECT k, max(v) AS v FROM t GROUP BY k", {"t": SCHEMA})


def refused() -> Any:
    raise AssertionError("nothing is computed here")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        yield Storage(client)


def input_at(storage: Storage, time: int) -> ReadCapability:
    read, write = storage.create("t", CollectionDescription(SCHEMA), time)
    storage.update_and_downgrade(write, [persist.Update((1, 5), time, 1)], time + 2)
    return read


def test_several_outputs_begin_at_one_time_in_one_commit(storage: Storage) -> None:
    compute = Compute(storage, refused)
    read = input_at(storage, 3)
    before = storage.client.state.seqno
    capabilities = compute.maintain_view([read], [COUNTS, TOPS])
    assert [each.id for each in capabilities] == ["counts", "tops"]
    assert {each.frontier.only() for each in capabilities} == {3}
    assert storage.client.state.seqno > before
    held = [hold for hold in storage.client.state.holds if hold.startswith("view/")]
    inputs = sorted(hold for hold in held if "arrangement" not in hold)
    assert inputs == ["view/counts/t", "view/tops/t"]
    (again,) = {view.hydrated_at for view in compute.dataflow.views.values()}
    assert again == 3


def test_compute_answers_for_its_own_ids_alone(storage: Storage) -> None:
    compute = Compute(storage, refused)
    compute.maintain_view([input_at(storage, 1)], COUNTS)
    assert compute.acquire_capabilities("counts").id == "counts"
    with pytest.raises(errors.UnknownCollection, match="no view"):
        compute.acquire_capabilities("t")


def test_a_name_that_is_taken_is_refused_before_anything_is_made(storage: Storage) -> None:
    compute = Compute(storage, refused)
    read = input_at(storage, 1)
    taken = Definition.of_sql("t", "SELECT k FROM t", {"t": SCHEMA})
    with pytest.raises(errors.NameTaken):
        compute.maintain_view([read], [COUNTS, taken])
    assert "counts" not in storage.client.state.names
    storage.renew(read)  # it is still the caller's
