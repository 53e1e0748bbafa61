"""Places in a log of PostgreSQL: what lies between two of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows.coded.lsn import Lsn
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.fit import WIDE


def _distance(a: bytes, b: bytes) -> Decimal:
    return Decimal(int.from_bytes(a, "big") - int.from_bytes(b, "big"))


def _moved(sign: int) -> Callable[[bytes, Any], bytes]:
    def act(place: bytes, by: Decimal) -> bytes:
        if not by.is_finite():
            word = "add NaN to" if sign > 0 else "subtract NaN from"
            if by.is_nan():
                raise InvalidArgument(f"cannot {word} pg_lsn")
            raise InvalidArgument("pg_lsn out of range")
        moved = WIDE.add(int.from_bytes(place, "big"), by.copy_negate() if sign < 0 else by)
        number = int(moved.to_integral_value(ROUND_HALF_UP))
        if not 0 <= number < 1 << 64:
            raise InvalidArgument("pg_lsn out of range")
        return number.to_bytes(8, "big")

    return act


_PLUS, _MINUS = _moved(1), _moved(-1)

TABLE = (
    Function("pg_wal_lsn_diff", (Lsn, Lsn), t.Numeric(), _distance),
    Function("-", (Lsn, Lsn), t.Numeric(), _distance),
    Function("+", (Lsn, t.Numeric), Lsn(), _PLUS, fallible=True),
    Function("+", (t.Numeric, Lsn), Lsn(), lambda by, place: _PLUS(place, by), fallible=True),
    Function("-", (Lsn, t.Numeric), Lsn(), _MINUS, fallible=True),
)
