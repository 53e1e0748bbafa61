"""A column that is NOT NULL reads and merges alike from parts and from the log."""

from __future__ import annotations

import pytest

from noonmark import persist
from noonmark.rows.schema import Schema

SCHEMA = Schema.of(id="bigint not null", name="text not null")
ROWS = [(n, f"name {n}") for n in range(200)]


@pytest.mark.parametrize("prefetch_bytes_max", [0, 1 << 20], ids=["merged", "at once"])
def test_required_columns_in_parts_and_inline(prefetch_bytes_max: int) -> None:
    config = persist.Config(
        inline_bytes_max=1_000, merge_fan_in=100, prefetch_bytes_max=prefetch_bytes_max
    )
    place = f"memory:not-null-{prefetch_bytes_max}"
    with persist.open(place, options=persist.Options(config=config)) as client:
        write, read = client.create_or_load("c", SCHEMA, ("id",))
        write.write([persist.Update(row, 1, 1) for row in ROWS])
        write.write([persist.Update(ROWS[0], 2, -1)])
        write.seal(3).result(10)
        assert [bool(batch.parts) for batch in client.state.collection("c").batches] == [
            True,
            False,
        ]
        assert sorted(read.snapshot(1).result(10).rows()) == ROWS
        assert sorted(read.snapshot(2).result(10).rows()) == ROWS[1:]
        assert read.snapshot(2, keys=[0, 7]).result(10).rows() == [ROWS[7]]
        step = next(iter(read.listen(0)))
        assert len(step.updates) == 201
        write.allow_compaction(2).result(10)
        client.compact("c").result(10)
        assert sorted(read.snapshot(2).result(10).rows()) == ROWS[1:]
