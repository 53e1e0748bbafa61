"""TPC-H for tests: the 22 queries, the schemas, and the generator's rows at a scale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark.rows.array import from_table
from noonmark.rows.conform import conform
from noonmark.rows.schema import Schema
from noonmark.source.impl.tpch import Tpch

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "tpch"
QUERIES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("q*.sql"))}
SCHEMAS: dict[str, Schema] = {
    output.name: output.schema for output in Tpch(seed=0, start_ms=0).outputs
}

_CONTROL = ("_partition", "_offset", "_output", "_diff")


def pieces(seed: int, scale_factor: float) -> Iterator[tuple[str, pa.Table]]:
    """The initial load, piece by piece, each of one table; in the order of the keys."""
    generator = Tpch(seed=seed, start_ms=0, scale_factor=scale_factor)
    names = list(SCHEMAS)
    for split in generator.cut(0, 0, 1):
        for batch in generator.read(split):
            name = names[batch.column("_output")[0].as_py()]
            data = pa.Table.from_batches([batch]).drop_columns(list(_CONTROL))
            yield name, conform(data, SCHEMAS[name])


def rows(seed: int, scale_factor: float) -> dict[str, dict[tuple[Any, ...], int]]:
    """Every table as a multiset, after the initial load."""
    tables: dict[str, dict[tuple[Any, ...], int]] = {name: {} for name in SCHEMAS}
    for name, piece in pieces(seed, scale_factor):
        tables[name].update(dict.fromkeys(from_table(piece, SCHEMAS[name]), 1))
    return tables
