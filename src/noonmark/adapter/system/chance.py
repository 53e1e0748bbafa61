"""Chance and waiting: random, setseed, gen_random_uuid, pg_sleep.

They exist in one-shot queries, INSERT and DEFAULT, as all that the session answers: what a view
shows is a function of its inputs.

Law (row): each row that is asked for has a number of its own. After `setseed` the numbers of a
session are the same as after the same `setseed` before, in the order in which they are asked for;
they are not PostgreSQL's.
"""

from __future__ import annotations

import datetime as dt
import random
import secrets
import uuid
from collections.abc import Awaitable
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from noonmark.adapter.system.objects import ask
from noonmark.clock import Clock
from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.numeral import scale_of
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Digits for any numeric.
_WIDE = Context(prec=150_000)
_DAY_S, _MONTH_DAYS = 86_400, 30


def about_chance(session: AdapterSession) -> list[Function]:
    """What is different every time, and what takes its time."""
    clock = session.database.clock
    chance = random.Random(clock.fresh_id())  # nobody's secret

    def seed(value: float) -> str:
        if not -1 <= value <= 1:
            raise InvalidArgument(f"setseed parameter {value:g} is out of allowed range [-1,1]")
        chance.seed(value)
        return ""

    def identifier() -> uuid.UUID:
        return uuid.UUID(int=secrets.randbits(128), version=4)

    def wait(seconds: float) -> Awaitable[str]:
        return _after(clock, seconds)

    def wait_for(interval: v.Interval) -> Awaitable[str]:
        days = interval.months * _MONTH_DAYS + interval.days
        return _after(clock, days * _DAY_S + interval.micros / 1e6)

    def wait_until(moment: dt.datetime) -> Awaitable[str]:
        return _after(clock, moment.timestamp() - clock.now_ms() / 1000)

    def between(low: int, high: int) -> int:
        _check_bounds(low, high)
        return chance.randint(low, high)

    def numeric_between(low: Decimal, high: Decimal) -> Decimal:
        """At as many digits as the finer bound has."""
        if not (low.is_finite() and high.is_finite()):
            raise InvalidArgument("lower and upper bounds must not be NaN or infinity")
        _check_bounds(low, high)
        unit = Decimal(1).scaleb(-max(scale_of(low), scale_of(high)))
        first, last = (int(_WIDE.divide(each, unit)) for each in (low, high))
        return _WIDE.multiply(Decimal(chance.randint(first, last)), unit)

    void = t.Text("void")
    return [
        *(
            ask("random", (kind, kind), kind(), between, fallible=True, volatile=True)
            for kind in (t.Integer, t.BigInt)
        ),
        ask(
            "random",
            (t.Numeric, t.Numeric),
            t.Numeric(),
            numeric_between,
            fallible=True,
            volatile=True,
        ),
        ask("random", (), t.Double(), chance.random, volatile=True),
        ask("setseed", (t.Double,), void, seed, fallible=True, volatile=True),
        ask("gen_random_uuid", (), t.Uuid(), identifier, volatile=True),
        ask("pg_sleep", (t.Double,), void, wait, volatile=True, waits=True),
        ask("pg_sleep_until", (t.TimestampTz,), void, wait_until, volatile=True, waits=True),
        ask("pg_sleep_for", (t.Interval,), void, wait_for, volatile=True, waits=True),
    ]


def _check_bounds(low: int | Decimal, high: int | Decimal) -> None:
    if low > high:
        raise InvalidArgument("lower bound must be less than or equal to upper bound")


async def _after(clock: Clock, seconds: float) -> str:
    await clock.sleep(max(0.0, seconds))
    return ""
