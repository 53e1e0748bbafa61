"""LOAD GENERATOR TPCH: all eight tables at a scale factor, loaded at once and changing ever after.

Offset 0 is the initial load: one transaction, cut into pieces (table, first key, last key). Every
later offset is one tick and one transaction:

- `orders_per_tick` orders are replaced: the old ones deleted with their lines, new ones inserted;
- `updates_per_tick` rows each of customer, part, supplier and partsupp get other contents.

Changes walk through a table in strides, so that change number i is to the key at place
``i % count`` of the walk, and replaces version ``i // count``: nothing has to be remembered.

Law: after any offset the tables have the sizes of the scale, every key once, and every reference
resolves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from noonmark.errors import ConfigError
from noonmark.rows.schema import Schema
from noonmark.source.contract import Output, Split
from noonmark.source.impl.chance import Longs, stride
from noonmark.source.impl.generator import BATCH_ROWS, SPLIT_ROWS, Generator
from noonmark.source.impl.tpch_rows import (
    CUSTOMER,
    LINEITEM,
    ORDERS,
    PART,
    PARTSUPP,
    SUPPLIER,
    Columns,
    Rows,
)
from noonmark.tvc import Partition

_TYPES = {"money": "numeric(15,2)"}


def _output(name: str, key: str, columns: str) -> Output:
    pairs = (column.split() for column in columns.split(", "))
    types = {column: _TYPES.get(kind, kind) + " not null" for column, kind in pairs}
    return Output(name, Schema.of(**types), tuple(key.split()))


_OUTPUTS = (
    _output("region", "r_regionkey", "r_regionkey integer, r_name text, r_comment text"),
    _output(
        "nation",
        "n_nationkey",
        "n_nationkey integer, n_name text, n_regionkey integer, n_comment text",
    ),
    _output(
        "supplier",
        "s_suppkey",
        "s_suppkey bigint, s_name text, s_address text, s_nationkey integer, s_phone text, "
        "s_acctbal money, s_comment text",
    ),
    _output(
        "part",
        "p_partkey",
        "p_partkey bigint, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer, "
        "p_container text, p_retailprice money, p_comment text",
    ),
    _output(
        "partsupp",
        "ps_partkey ps_suppkey",
        "ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost money, "
        "ps_comment text",
    ),
    _output(
        "customer",
        "c_custkey",
        "c_custkey bigint, c_name text, c_address text, c_nationkey integer, c_phone text, "
        "c_acctbal money, c_mktsegment text, c_comment text",
    ),
    _output(
        "orders",
        "o_orderkey",
        "o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice money, "
        "o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority integer, "
        "o_comment text",
    ),
    _output(
        "lineitem",
        "l_orderkey l_linenumber",
        "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, "
        "l_quantity money, l_extendedprice money, l_discount money, l_tax money, "
        "l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, "
        "l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text",
    ),
)
_CHANGING = (CUSTOMER, PART, SUPPLIER, PARTSUPP)
_LINES = 4


@dataclass(frozen=True, kw_only=True)
class Tpch(Generator):
    """See the module."""

    scale_factor: float = 0.01
    orders_per_tick: int = 1
    updates_per_tick: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scale_factor <= 10_000:
            raise ConfigError(f"SCALE FACTOR must be above 0, up to 10000: {self.scale_factor}")
        rows = self._rows
        if not 0 <= self.orders_per_tick <= rows.orders:
            raise ConfigError(f"a tick replaces 0 to {rows.orders} orders")
        if not 0 <= self.updates_per_tick <= rows.suppliers:
            raise ConfigError(f"a tick updates 0 to {rows.suppliers} rows of a table")

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self.seed, self.scale_factor)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """See `Source.outputs`."""
        return _OUTPUTS

    def reached(self, ticks: int) -> dict[Partition, int]:
        """The first tick is the load."""
        return {0: ticks}

    def rows_per_offset(self) -> int:
        """Of a tick, not of the load."""
        changes = 2 * (1 + _LINES) * self.orders_per_tick + 8 * self.updates_per_tick
        return max(1, changes)

    def cut(self, partition: Partition, start: int, stop: int) -> list[Split]:
        """The load is cut by table and key, the rest by offset."""
        load = self._load(partition) if start == 0 else []
        later = super().cut(partition, max(start, 1), stop) if stop > 1 else []
        return load + later

    def _load(self, partition: Partition) -> list[Split]:
        splits = []
        for table in range(ORDERS + 1):
            rows = 1 + _LINES if table == ORDERS else 1
            count, step = self._rows.count(table), SPLIT_ROWS // rows
            for first in range(0, count, step):
                last = min(first + step, count)
                splits.append(Split(partition, 0, 1, (table, first, last), (last - first) * rows))
        return splits

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        if split.piece:
            table, first, last = (int(number) for number in split.piece)
            step = BATCH_ROWS // _LINES if table == ORDERS else BATCH_ROWS
            for at in range(first, last, step):
                keys = np.arange(at, min(at + step, last))
                zeros = np.zeros_like(keys)
                yield from self._updates(split, table, (zeros, keys, zeros, zeros + 1))
            return
        for start, stop in self.steps(split):
            for table in (*_CHANGING, ORDERS):
                per_tick = self.orders_per_tick if table == ORDERS else self.updates_per_tick
                if per_tick:
                    changes = self._changes(table, start, stop, per_tick)
                    yield from self._updates(split, table, changes)

    def _changes(self, table: int, start: int, stop: int, per_tick: int) -> tuple[Longs, ...]:
        """Offset, key, version and diff of what the ticks [start, stop) do to a table."""
        count = self._rows.count(table)
        nth = np.arange((start - 1) * per_tick, (stop - 1) * per_tick)
        keys = np.repeat(nth % count * stride(count) % count, 2)
        versions = np.stack([nth // count, nth // count + 1], axis=1).ravel()
        return np.repeat(nth // per_tick + 1, 2), keys, versions, np.tile([-1, 1], len(nth))

    def _updates(
        self, split: Split, table: int, changes: tuple[Longs, ...]
    ) -> Iterator[pa.RecordBatch]:
        offsets, keys, versions, diffs = changes
        if table != ORDERS:
            columns: Columns = {"_diff": diffs, **self._rows.rows(table, keys, versions)}
            yield self.batch(table, split.partition, offsets, columns)
            return
        orders, lines, owner = self._rows.orders_and_lines(keys, versions)
        yield self.batch(ORDERS, split.partition, offsets, {"_diff": diffs, **orders})
        columns = {"_diff": diffs[owner], **lines}
        yield self.batch(LINEITEM, split.partition, offsets[owner], columns)
