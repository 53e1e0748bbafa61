"""TPC-H that changes: rows of all eight tables come, go and are replaced; how answers compare.

A `Tables` has the contents now, as Arrow. `Tables.change` makes the updates of one time: of every
table some rows are deleted, some that were deleted before come back, and some get the values of
another row in everything but their key. So references stay mostly whole, and mostly change.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noonmark.compute.reference import evaluate
from noonmark.persist.run import DIFF, TIME
from noonmark.rows.array import from_table
from noonmark.rows.conform import conform
from noonmark.rows.schema import Schema
from noonmark.source.impl.tpch import Tpch
from noonmark.sql.ir import relation as r
from support.tpch import SCHEMAS

KEYS: dict[str, tuple[str, ...]] = {
    output.name: output.key for output in Tpch(seed=0, start_ms=0).outputs
}
FEW_ROWS = 100
_CONTROL = ("_partition", "_offset", "_output", "_diff")
Row = tuple[Any, ...]


def initial(seed: int, scale_factor: float) -> dict[str, pa.Table]:
    """Every table after the initial load."""
    generator = Tpch(seed=seed, start_ms=0, scale_factor=scale_factor)
    names = list(SCHEMAS)
    parts: dict[str, list[pa.Table]] = {name: [] for name in names}
    for split in generator.cut(0, 0, 1):
        for batch in generator.read(split):
            name = names[batch.column("_output")[0].as_py()]
            data = pa.Table.from_batches([batch]).drop_columns(list(_CONTROL))
            parts[name].append(conform(data, SCHEMAS[name]))
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in parts.items()}


def kept(folder: Path, seed: int, scale_factor: float) -> dict[str, pa.Table]:
    """The tables as Parquet in a folder; generated when they are not there."""
    if not folder.exists():
        made = folder.with_suffix(".new")
        made.mkdir(parents=True, exist_ok=True)
        for name, table in initial(seed, scale_factor).items():
            pq.write_table(table, made / f"{name}.parquet", compression="zstd")
        made.rename(folder)
    return {name: pq.read_table(folder / f"{name}.parquet") for name in SCHEMAS}


def updates(table: pa.Table, time: int, diff: int) -> pa.Table:
    """Plain rows as updates."""
    times, diffs = (pa.array(np.full(table.num_rows, x, np.int64)) for x in (time, diff))
    return table.append_column(TIME, times).append_column(DIFF, diffs)


class Tables:
    """The contents now, and what was deleted."""

    def __init__(self, seed: int, scale_factor: float, folder: Path | None = None) -> None:
        """The tables of a seed and a scale; read from a folder that has them, or left there."""
        self.chance = np.random.default_rng(seed)
        self.now = (
            initial(seed, scale_factor)
            if folder is None
            else kept(folder / f"seed{seed}-scale{scale_factor:g}", seed, scale_factor)
        )
        self.gone = {name: table.slice(0, 0) for name, table in self.now.items()}

    def change(
        self, time: int, fraction: float, rows_max: int = 2_000, *, few: bool = True
    ) -> dict[str, pa.Table]:
        """The updates of one time, of about that fraction of each table.

        Without `few` the tables of a handful of rows stay as they are: a region that goes takes a
        fifth of everything with it.
        """
        chosen = [n for n, table in self.now.items() if few or table.num_rows >= FEW_ROWS]
        made = {name: table.slice(0, 0) for name, table in self.now.items()}
        made = {name: updates(table, time, 1) for name, table in made.items()}
        return made | {name: self._change(name, time, fraction, rows_max) for name in chosen}

    def _change(self, name: str, time: int, fraction: float, rows_max: int) -> pa.Table:
        table = self.now[name]
        count = max(1, min(int(table.num_rows * fraction / 3), rows_max // 3))
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
