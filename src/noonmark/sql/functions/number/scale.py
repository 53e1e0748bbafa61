"""How many digits PostgreSQL gives a result that is not exact.

It counts in base 10,000: how many digits a quotient or a root shows follows from the weight and the
value of the first such digit of its operands. At least 16 digits are significant; none are shown
behind the 1000th after the point.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

from noonmark.rows.numeral import scale_of
from noonmark.sql.functions.number.fit import WIDE

SIGNIFICANT_DIGITS_MIN = 16
SCALE_SHOWN_MAX = 1000
#: Of one digit in base 10,000.
DIGITS = 4


def leading(number: Decimal) -> tuple[int, int]:
    """The weight and value of the first digit in base 10,000."""
    if not number:
        return 0, 0
    weight = number.adjusted() // DIGITS
    return weight, int(number.copy_abs().scaleb(-weight * DIGITS, WIDE))


def division_scale(a: Decimal, b: Decimal) -> int:
    """How many digits after the point PostgreSQL gives a / b."""
    (weight_a, first_a), (weight_b, first_b) = leading(a), leading(b)
    weight = weight_a - weight_b - (first_a <= first_b)
    return shown(SIGNIFICANT_DIGITS_MIN - weight * DIGITS, a, b)


def shown(wanted: int, *operands: Decimal) -> int:
    """A scale: no less than that of the operands, and no more than is ever shown."""
    return min(max(wanted, 0, *map(scale_of, operands)), SCALE_SHOWN_MAX)


def quotient(a: Decimal, b: Decimal, scale: int) -> Decimal:
    """The quotient of numbers, rounded once: ties away from zero."""
    shift = scale - scale_of(a) + scale_of(b)
    above, below = (int(x.copy_abs().scaleb(scale_of(x), WIDE)) for x in (a, b))
    above, below = above * 10 ** max(shift, 0), below * 10 ** max(-shift, 0)
    made = Decimal((2 * above + below) // (2 * below)).scaleb(-scale, WIDE)
    return made if not made or a.is_signed() == b.is_signed() else made.copy_negate()


def context_of(digits: int) -> decimal.Context:
    """A context with so many digits and some more: what is rounded then is rounded right."""
    return decimal.Context(
        prec=digits + 30, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999
    )
