"""TPC-H's rows as pure functions of (seed, key, version), whole columns at a time.

Keys count from 0 here and from 1 in the tables. Version 0 of a row is in the initial load; each
change makes the next version. An order's version changes its key too (it is another order); those
of the other tables change the columns that TPC-H does not derive from the key.

The value sets, formulas and correlations that the 22 queries rely on are TPC-H's: which supplier
has which part, prices from part keys, dates in their order, flags from dates, totals from lines,
customers whose key is a multiple of 3 without orders. The texts are not those of its own tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from noonmark.source.impl import tpch_text as text
from noonmark.source.impl.chance import Longs, Words, again, below, between, draw
from noonmark.source.impl.columns import cents, numbered, pick

Columns = dict[str, Any]

(REGION, NATION, SUPPLIER, PART, PARTSUPP, CUSTOMER, ORDERS, LINEITEM) = range(8)

# Days since 1970: the first and last order, and the day that divides past from future.
_FIRST_DAY, _LAST_DAY, _TODAY = 8_035, 10_440, 9_298
_LINES_MAX = 7


@dataclass(frozen=True)
class Rows:
    """The tables at one scale: how many rows, and what is in them."""

    seed: int
    scale: float

    @property
    def suppliers(self) -> int:
        """Rows of supplier."""
        return max(12, int(10_000 * self.scale))

    @property
    def parts(self) -> int:
        """Rows of part; partsupp has four times as many."""
        return max(40, int(200_000 * self.scale))

    @property
    def customers(self) -> int:
        """Rows of customer."""
        return max(30, int(150_000 * self.scale))

    @property
    def orders(self) -> int:
        """Rows of orders; lineitem has about four times as many."""
        return max(300, int(1_500_000 * self.scale))

    def count(self, table: int) -> int:
        """How many keys a table has; lineitem goes with orders."""
        counts = {
            REGION: len(text.REGIONS),
            NATION: len(text.NATIONS),
            SUPPLIER: self.suppliers,
            PART: self.parts,
            PARTSUPP: 4 * self.parts,
            CUSTOMER: self.customers,
        }
        return counts.get(table, self.orders)

    def rows(self, table: int, keys: Longs, versions: Longs) -> Columns:
        """Rows of any table but orders and lineitem."""
        make = {
            REGION: self._region,
            NATION: self._nation,
            SUPPLIER: self._supplier,
            PART: self._part,
            PARTSUPP: self._partsupp,
            CUSTOMER: self._customer,
        }
        return make[table](keys, draw(self.seed, table, keys, versions))

    def _region(self, keys: Longs, bits: Words) -> Columns:
        names = pick(pa.array(text.REGIONS), keys)
        return {"r_regionkey": _int(keys), "r_name": names, "r_comment": _comment(bits)}

    def _nation(self, keys: Longs, bits: Words) -> Columns:
        return {
            "n_nationkey": _int(keys),
            "n_name": pick(pa.array([name for name, _ in text.NATIONS]), keys),
            "n_regionkey": _int(np.array([region for _, region in text.NATIONS])[keys]),
            "n_comment": _comment(bits),
        }

    def _supplier(self, keys: Longs, bits: Words) -> Columns:
        nation = below(draw(self.seed, SUPPLIER, keys), len(text.NATIONS))
        return {
            "s_suppkey": keys + 1,
            "s_name": numbered("Supplier*#########", keys + 1),
            "s_address": pick(text.addresses(), below(again(bits, 1), text.POOL)),
            "s_nationkey": _int(nation),
            "s_phone": _phone(nation, again(bits, 2)),
            "s_acctbal": cents(between(again(bits, 3), -99_999, 999_999)),
            "s_comment": _comment(bits),
        }

    def _part(self, keys: Longs, bits: Words) -> Columns:
        fixed = draw(self.seed, PART, keys)
        maker, brand = between(fixed, 1, 5), between(again(fixed, 1), 1, 5)
        return {
            "p_partkey": keys + 1,
            "p_name": pick(text.part_names(), below(again(fixed, 2), text.POOL)),
            "p_mfgr": numbered("Manufacturer*#", maker),
            "p_brand": numbered("Brand*##", maker * 10 + brand),
            "p_type": pick(text.TYPES, below(again(fixed, 3), len(text.TYPES))),
            "p_size": between(again(bits, 1), 1, 50).astype(np.int32),
            "p_container": pick(text.CONTAINERS, below(again(bits, 2), len(text.CONTAINERS))),
            "p_retailprice": cents(_price(keys + 1)),
            "p_comment": _comment(bits),
        }

    def _partsupp(self, keys: Longs, bits: Words) -> Columns:
        part, nth = keys // 4, keys % 4
        return {
            "ps_partkey": part + 1,
            "ps_suppkey": self.supplier_of(part, nth),
            "ps_availqty": between(bits, 1, 9_999).astype(np.int32),
            "ps_supplycost": cents(between(again(bits, 1), 100, 100_000)),
            "ps_comment": _comment(bits),
        }

    def supplier_of(self, part: Longs, nth: Longs) -> Longs:
        """The four suppliers of a part are distinct, and spread over all of them."""
        # A step below a third of all never comes around to a supplier again within four.
        step = self.suppliers // 4 + part // self.suppliers % (self.suppliers // 12)
        return (part + nth * step) % self.suppliers + 1

    def _customer(self, keys: Longs, bits: Words) -> Columns:
        nation = below(draw(self.seed, CUSTOMER, keys), len(text.NATIONS))
        return {
            "c_custkey": keys + 1,
            "c_name": numbered("Customer*#########", keys + 1),
            "c_address": pick(text.addresses(), below(again(bits, 1), text.POOL)),
            "c_nationkey": _int(nation),
            "c_phone": _phone(nation, again(bits, 2)),
            "c_acctbal": cents(between(again(bits, 3), -99_999, 999_999)),
            "c_mktsegment": pick(text.SEGMENTS, below(again(bits, 4), len(text.SEGMENTS))),
            "c_comment": _comment(bits),
        }

    def orders_and_lines(self, slots: Longs, versions: Longs) -> tuple[Columns, Columns, Longs]:
        """The orders, their lines, and for each line the place of its order."""
        bits = draw(self.seed, ORDERS, slots, versions)
        keys = slots + versions * self.orders + 1
        days = between(again(bits, 1), _FIRST_DAY, _LAST_DAY)
        lines_of = between(again(bits, 2), 1, _LINES_MAX)
        owner = np.repeat(np.arange(len(slots)), lines_of)
        starts = np.cumsum(lines_of) - lines_of
        lines, totals, shipped = self._lines(keys, bits, days, owner, starts)
        done = np.add.reduceat(shipped, starts)
        status = np.where(done == lines_of, 0, np.where(done == 0, 1, 2))
        third = between(again(bits, 3), 0, self.customers // 3 - 1) * 3
        orders = {
            "o_orderkey": keys,
            "o_custkey": third + 1 + below(again(bits, 4), 2),
            "o_orderstatus": pick(text.STATUS, status),
            "o_totalprice": cents(np.add.reduceat(totals, starts)),
            "o_orderdate": _date(days),
            "o_orderpriority": pick(text.PRIORITIES, below(again(bits, 5), 5)),
            "o_clerk": numbered("Clerk*#########", between(again(bits, 6), 1, 1_000)),
            "o_shippriority": _int(np.zeros_like(keys)),
            "o_comment": _comment(bits),
        }
        return orders, lines, owner

    def _lines(
        self, keys: Longs, bits: Words, days: Longs, owner: Longs, starts: Longs
    ) -> tuple[Columns, Longs, Longs]:
        """The lines, what each adds to its order's total, and whether it was shipped (1 or 0)."""
        number = np.arange(len(owner)) - starts[owner] + 1
        bits = draw(self.seed, LINEITEM, bits[owner].view(np.int64), number)
        part = below(bits, self.parts)
        quantity = between(again(bits, 1), 1, 50)
        discount, tax = between(again(bits, 2), 0, 10), between(again(bits, 3), 0, 8)
        price = quantity * _price(part + 1)
        ship = days[owner] + between(again(bits, 4), 1, 121)
        commit = days[owner] + between(again(bits, 5), 30, 90)
        receipt = ship + between(again(bits, 6), 1, 30)
        shipped = (ship <= _TODAY).astype(np.int64)
        returned = np.where(receipt > _TODAY, 1, below(again(bits, 7), 2) * 2)
        lines = {
            "l_orderkey": keys[owner],
            "l_partkey": part + 1,
            "l_suppkey": self.supplier_of(part, below(again(bits, 8), 4)),
            "l_linenumber": number.astype(np.int32),
            "l_quantity": cents(quantity * 100),
            "l_extendedprice": cents(price),
            "l_discount": cents(discount),
            "l_tax": cents(tax),
            "l_returnflag": pick(text.FLAGS, returned),
            "l_linestatus": pick(text.STATUS, 1 - shipped),
            "l_shipdate": _date(ship),
            "l_commitdate": _date(commit),
            "l_receiptdate": _date(receipt),
            "l_shipinstruct": pick(text.INSTRUCTIONS, below(again(bits, 9), 4)),
            "l_shipmode": pick(text.MODES, below(again(bits, 10), 7)),
            "l_comment": _comment(again(bits, 11)),
        }
        return lines, price * (100 + tax) * (100 - discount) // 10_000, shipped


def _price(partkey: Longs) -> Longs:
    return 90_000 + partkey // 10 % 20_001 + 100 * (partkey % 1_000)


def _int(numbers: Longs) -> Any:
    return numbers.astype(np.int32)


def _date(days: Longs) -> pa.Array:
    return pa.array(days.astype(np.int32)).view(pa.date32())


def _comment(bits: Words) -> pa.Array:
    return pick(text.comments(), below(bits, text.POOL))


def _phone(nation: Longs, bits: Words) -> pa.Array:
    parts = (between(again(bits, nth), 100, 999) for nth in (1, 2))
    return numbered("##-###-###-####", nation + 10, *parts, between(again(bits, 3), 1_000, 9_999))
