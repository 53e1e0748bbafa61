"""Aggregates of the types of `rows.coded`: bits by bits, and what ranges have in common or fill."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit
from noonmark.rows.coded.ranges import PAIRS, Multirange, Range
from noonmark.sql.functions import bits
from noonmark.sql.functions.aggregate import Aggregator, Meaning, Rows
from noonmark.sql.functions.ranges import common


def _folded(act: Callable[[bytes, bytes], bytes], *, counted: bool = False) -> Meaning:
    """The fold of the values; of those that are there often, once is enough unless it counts."""

    def fold(_: tuple[t.SqlType, ...], rows: Rows) -> bytes | None:
        times = ((arguments[0], 2 - count % 2 if counted else 1) for arguments, count in rows)
        values = [value for value, count in times for _ in range(count)]
        return reduce(act, values) if values else None

    return fold


def _filled(several: type[Multirange], kind: type[Range | Multirange]) -> Meaning:
    def fold(_: tuple[t.SqlType, ...], rows: Rows) -> bytes | None:
        spans = [each for arguments, _ in rows for each in kind.spans(arguments[0])]
        return several.value(spans) if rows else None

    return fold


def _common(kind: type[Range | Multirange]) -> Meaning:
    return _folded(lambda a, b: common(kind, a, b))


def _row(name: str, kind: type[t.Coded], result: t.Coded, meaning: Meaning) -> Aggregator:
    # See `ranges._computed`.
    edition = 2 if name == "range_agg" and not kind.one_form else 1
    return Aggregator(name, (kind,), result, meaning, gives_null=True, edition=edition)


TABLE = (
    _row("bit_and", Bit, Bit(), _folded(bits.AND)),
    _row("bit_or", Bit, Bit(), _folded(bits.OR)),
    _row("bit_xor", Bit, Bit(), _folded(bits.XOR, counted=True)),
    *(
        _row("range_agg", kind, several(), _filled(several, kind))
        for one, several in PAIRS
        for kind in (one, several)
    ),
    *(_row("range_intersect_agg", kind, kind(), _common(kind)) for pair in PAIRS for kind in pair),
)
