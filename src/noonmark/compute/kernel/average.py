"""Averages of many groups at once: total / count with PostgreSQL's digits.

Law: where it has an answer, ``averages(totals, counts)`` is `accumulator.final` of each pair: the
quotient, a plain numeric, at the scale that PostgreSQL gives it, ties away from zero.

PostgreSQL counts in base 10,000: the digits of a quotient depend on the weight and the value of
the first such digit of both numbers (`noonmark.sql.functions.number.scale`). Groups are few scales.

Where it runs: executors; pure.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.updates import Ints
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.numeral import encode
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.number.scale import SIGNIFICANT_DIGITS_MIN

_POWERS = np.array([10**at for at in range(19)], np.int64)
_DIGITS = 4
#: Totals below it, as they are counted here, have powers of ten beside them.
_LARGEST = 10**17


def averaged(totals: pa.Array, counts: pa.Array, kind: t.SqlType) -> pa.Array | None:
    """The averages of the groups at once; None where they are to be asked one by one."""
    if not t.is_plain(kind):
        return None
    try:
        return averages(number.scaled(totals), counts.to_numpy())
    except NoKernel:
        return None


def averages(totals: number.Scaled, counts: Ints) -> pa.Array:
    """The averages of the groups; NULL for one without values, `NoKernel` where it is too large."""
    # Not np.abs: of the least 64-bit number that is itself.
    if totals.values.dtype == object or number.bound(totals.values) >= _LARGEST:
        raise NoKernel
    there = counts != 0
    sums, sizes = totals.values, np.where(there, counts, 1)
    scales = _scales(np.abs(sums), totals.scale, sizes)
    made = np.zeros(len(sums), object)
    for scale in np.unique(scales).tolist():
        at = np.flatnonzero(scales == scale)
        above = np.abs(sums[at]).astype(object) * 10 ** (scale - totals.scale)
        quotients = (2 * above + sizes[at]) // (2 * sizes[at].astype(object))
        signed = np.where(sums[at] < 0, -1, 1) * quotients
        made[at] = [encode(Decimal(x).scaleb(-scale, WIDE)) for x in signed.tolist()]
    return pa.array(made, pa.binary(), mask=~there)


def _scales(totals: Ints, scale: int, counts: Ints) -> Ints:
    """How many digits after the point each quotient has."""
    (weights, firsts), (weights_below, firsts_below) = _leading(totals, scale), _leading(counts, 0)
    weight = weights - weights_below - (firsts <= firsts_below)
    return np.asarray(np.maximum(SIGNIFICANT_DIGITS_MIN - weight * _DIGITS, scale))


def _leading(values: Ints, scale: int) -> tuple[Ints, Ints]:
    """The weight and value of the first digit in base 10,000; of zero both are 0."""
    places = np.searchsorted(_POWERS, values, "right") - 1 - scale
    weight = np.where(values == 0, 0, places // _DIGITS)
    shift = scale + weight * _DIGITS
    low = values * _POWERS[np.clip(-shift, 0, 18)]
    first = np.where(shift >= 0, values // _POWERS[np.clip(shift, 0, 18)], low)
    return weight, np.where(values == 0, 0, first)
