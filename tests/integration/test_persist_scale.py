"""What a long past and a large collection cost: opening, and reading a few keys.

Opening reads the newest rollup and the entries after it, so it follows the state and not the log.
Reading keys opens the parts whose statistics admit one, so it follows the keys and not the parts.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from support.store import long_log
from support.store.doubles import HookedBlob

pytestmark = pytest.mark.alone

ENTRIES = 100_000
OPENINGS = 3


@pytest.mark.slow
def test_opening_does_not_follow_the_length_of_the_log(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, parts, entries in ((small, 100, 110), (large, 10_000, ENTRIES)):
        state = long_log.grow(folder.name, parts, entries)
        assert state.seqno == entries
        long_log.settle(folder.name, folder)
    floors = [int(path.name) for path in (large / "floor").iterdir()]
    assert max(floors) > ENTRIES - 2_000, "the log was truncated behind rollups"
    assert len(list((large / "log").iterdir())) < 2_000
    assert len(list((large / "rollup").iterdir())) <= 2

    openings = [(opened(small), opened(large)) for _ in range(OPENINGS)]

    assert all(found["parts"] == 100 for found, _ in openings)
    assert all(found["parts"] == 10_000 and found["seqno"] > ENTRIES for _, found in openings)
    # Neighbours on the machine make single openings slow, so the quickest of each is compared.
    quickest_small = min(found["seconds"] for found, _ in openings)
    quickest_large = min(found["seconds"] for _, found in openings)
    print(f"opening: {quickest_small:.3f} s with 100 parts, {quickest_large:.3f} s with 10,000")
    assert quickest_large - quickest_small < 1.0


def opened(folder: Path) -> dict[str, float]:
    """What a fresh process says of opening the location."""
    command = [sys.executable, long_log.__file__, str(folder)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


SCHEMA = Schema.of(id="bigint", item="text")
PLACE = "memory:a-thousand-parts"
PARTS = 1_000
PART_ROWS = 50
ROWS = (
    PARTS * PART_ROWS * 3 // 2
)  # a merge ends a part where one of its steps ends, so some are short
#: Parts of at most about fifty rows, rewritten only when the test says so.
TINY_PARTS = persist.Config(
    inline_bytes_max=0, part_rows_max=PART_ROWS, merge_rows_max=PART_ROWS, merge_fan_in=1_000
)


def test_ten_keys_of_a_thousand_parts_open_few_objects() -> None:
    ids = list(range(ROWS))
    random.Random(7).shuffle(ids)
    options = persist.Options(config=persist.Config(merge_fan_in=1_000))
    with persist.open(PLACE, options=options) as client:
        write, _ = client.create_or_load("orders", SCHEMA, ("id",))
        for time in range(4):  # four runs over the whole range of keys, to be merged into one
            some = ids[time::4]
            items = [f"item {id_}" for id_ in some]
            columns = {"id": some, "item": items, "_time": [time] * len(some)}
            write.write(pa.table({**columns, "_diff": [1] * len(some)}))
        write.seal(4).result(60)
    with persist.open(PLACE, options=persist.Options(config=TINY_PARTS)) as client:
        client.compact("orders").result(120)
        (batch,) = client.state.collection("orders").batches
        assert len(batch.parts) >= PARTS

    blob = HookedBlob(open_blob(PLACE))
    runtime = Runtime.start()
    options = persist.Options(mode="independent")
    start = persist.Client.start(runtime, blob, open_consensus(PLACE), options)
    with runtime.submit(start).result(30) as reader:
        _, read = reader.create_or_load("orders")
        blob.calls.clear()
        wanted = random.Random(8).sample(ids, 10)
        rows = read.snapshot(3, keys=wanted).result(30).rows()
        assert sorted(rows) == sorted((id_, f"item {id_}") for id_ in wanted)
        opened_parts = {key for method, key in blob.calls if method.startswith("get")}
        print(f"10 keys of {len(batch.parts)} parts: {len(opened_parts)} objects opened")
        assert 0 < len(opened_parts) < 20
        assert len(blob.calls) < 20
