"""TPC-H that changes: rows of all eight tables come, go and are replaced; how answers compare.

A `Tables` has the contents now, as Arrow, or a sample of them. `Tables.change` makes the updates of
one time: of every table some rows are deleted, some that were deleted before come back, and some
get the values of another row in everything but their key. So references stay mostly whole, and
mostly change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.array import from_table
from noonmark.rows.conform import conform
from noonmark.rows.schema import Schema
from noonmark.source.impl.tpch import Tpch
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.relation import evaluate
from support.view.tpch import SCHEMAS, pieces

KEYS: dict[str, tuple[str, ...]] = {
    output.name: output.key for output in Tpch(seed=0, start_ms=0).outputs
}
FEW_ROWS = 100
GROUP_ROWS = 1 << 20
SAMPLE_ROWS = 200_000
Row = tuple[Any, ...]


def kept(folder: Path, seed: int, scale_factor: float) -> dict[str, Path]:
    """The tables as Parquet files of a folder; made when they are not there.

    They are written as they are generated: they need not fit into memory.
    """
    folder = folder / f"seed{seed}-scale{scale_factor:g}"
    if not folder.exists():
        made = folder.with_suffix(".new")
        made.mkdir(parents=True, exist_ok=True)
        waiting: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
        with ExitStack() as stack:
            writers: dict[str, pq.ParquetWriter] = {}
            for name, piece in pieces(seed, scale_factor):
                if name not in writers:
                    opened = pq.ParquetWriter(
                        made / f"{name}.parquet", piece.schema, compression="zstd"
                    )
                    writers[name] = stack.enter_context(opened)
                waiting[name].append(piece)
                if sum(each.num_rows for each in waiting[name]) >= GROUP_ROWS:
                    writers[name].write_table(pa.concat_tables(waiting[name]))
                    waiting[name] = []
            for name, rest in waiting.items():
                if rest:
                    writers[name].write_table(pa.concat_tables(rest))
        made.rename(folder)
    return {name: folder / f"{name}.parquet" for name in SCHEMAS}


def updates(table: pa.Table, time: int, diff: int) -> pa.Table:
    """Plain rows as updates."""
    times, diffs = (pa.array(np.full(table.num_rows, x, np.int64)) for x in (time, diff))
    return table.append_column(TIME, times).append_column(DIFF, diffs)


class Tables:
    """The contents now, or those of them that may change; and what was deleted."""

    def __init__(self, seed: int, now: dict[str, pa.Table], sizes: Mapping[str, int]) -> None:
        self.chance = np.random.default_rng(seed)
        self.now = now
        self.sizes = sizes
        self.gone = {name: table.slice(0, 0) for name, table in now.items()}

    @classmethod
    def generated(cls, seed: int, scale_factor: float) -> Self:
        """The tables of a seed and a scale, whole."""
        parts: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
        for name, piece in pieces(seed, scale_factor):
            parts[name].append(piece)
        now = {name: pa.concat_tables(each).combine_chunks() for name, each in parts.items()}
        return cls(seed, now, {name: table.num_rows for name, table in now.items()})

    @classmethod
    def sampled(cls, seed: int, files: Mapping[str, Path], rows: int = SAMPLE_ROWS) -> Self:
        """So many rows from all over each file: the rest of them never changes."""
        sizes = {name: pq.read_metadata(path).num_rows for name, path in files.items()}
        return cls(seed, {name: _sample(path, rows) for name, path in files.items()}, sizes)

    def change(
        self, time: int, fraction: float, rows_max: int = 2_000, *, few: bool = True
    ) -> dict[str, pa.Table]:
        """The updates of one time, of about that fraction of each table.

        Without `few` the tables of a handful of rows stay as they are: a region that goes takes a
        fifth of everything with it.
        """
        chosen = [n for n, size in self.sizes.items() if few or size >= FEW_ROWS]
        made = {name: table.slice(0, 0) for name, table in self.now.items()}
        made = {name: updates(table, time, 1) for name, table in made.items()}
        return made | {name: self._change(name, time, fraction, rows_max) for name in chosen}

    def _change(self, name: str, time: int, fraction: float, rows_max: int) -> pa.Table:
        table = self.now[name]
        count = max(1, min(int(self.sizes[name] * fraction / 3), rows_max // 3))
        chosen = self.chance.choice(table.num_rows, min(2 * count, table.num_rows), replace=False)
        deleted, replaced = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
        others = self.chance.choice(table.num_rows, len(replaced))
        fresh = table.take(pa.array(others))
        # A handful of rows would soon all be the same: of those only the comment is replaced.
        few = table.num_rows < FEW_ROWS
        for kept in table.column_names[:-1] if few else KEYS[name]:
            at = table.column_names.index(kept)
            fresh = fresh.set_column(at, kept, table.column(kept).take(pa.array(replaced)))
        fresh = fresh.cast(table.schema)
        back = self.gone[name].slice(0, count)
        out = table.take(pa.array(np.concatenate([deleted, replaced])))
        come = pa.concat_tables([fresh, back])
        self.gone[name] = pa.concat_tables(
            [self.gone[name].slice(count), table.take(pa.array(deleted))]
        )
        left = np.ones(table.num_rows, np.bool_)
        left[chosen] = False
        self.now[name] = pa.concat_tables([table.filter(pa.array(left)), come]).combine_chunks()
        return pa.concat_tables([updates(out, time, -1), updates(come, time, 1)])


def _sample(path: Path, rows: int) -> pa.Table:
    """Every so-manieth row of a file."""
    file = pq.ParquetFile(path)
    step = max(1, file.metadata.num_rows // rows)
    batches = file.iter_batches(batch_size=GROUP_ROWS)
    taken = [batch.take(pa.array(range(0, batch.num_rows, step))) for batch in batches]
    return pa.Table.from_batches(taken).combine_chunks()


def without_limit(sql: str) -> str:
    """The query without its last LIMIT."""
    return re.sub(r"limit\s+\d+\s*;?\s*$", "", sql.strip().rstrip(";"), flags=re.IGNORECASE)


def limited(plan: r.Relation, rows: list[Row]) -> dict[Row, int]:
    """The judge's rows, cut to the LIMIT of the plan by our order of rows that SQL leaves open."""
    counts = dict(Counter(rows))
    if not isinstance(plan, r.TopK):
        return counts
    top = r.TopK(r.Scan("x", plan.schema), (), plan.order, plan.limit, plan.offset)
    return evaluate(top, {"x": counts})


def disagreement(plan: r.Relation, ours: dict[Row, int], theirs: list[Row]) -> str | None:
    """What differs; numbers that the judge computes as floats are compared to 9 digits."""
    wanted = limited(plan, [_values(row, plan.schema) for row in theirs])
    a, b = (sorted(Counter(_rounded(rows)).items(), key=repr) for rows in (ours, wanted))
    return None if a == b else f"{len(a)} rows against {len(b)}: {a[:2]} against {b[:2]}"


def _values(row: Row, schema: Schema) -> Row:
    """The judge's values in our types."""
    return tuple(
        Decimal(repr(value)) if isinstance(value, float) else value
        for value, _ in zip(row, schema, strict=True)
    )


def _rounded(rows: dict[Row, int]) -> Counter[Row]:
    made: Counter[Row] = Counter()
    for row, count in rows.items():
        made[tuple(_short(value) for value in row)] += count
    return made


def _short(value: Any) -> Any:
    if isinstance(value, Decimal | int | float) and not isinstance(value, bool):
        return f"{float(value):.8e}"
    return value


def listed(table: pa.Table, schema: Schema) -> list[Row]:
    """The rows of a table as Python's."""
    return list(from_table(conform(table, schema), schema))
