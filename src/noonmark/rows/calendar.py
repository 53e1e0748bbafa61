"""The proleptic Gregorian calendar over every day there is.

Years are astronomical: 0 is 1 BC, -1 is 2 BC. Days count from 1970-01-01.

Law: ``days_from_civil(*civil_from_days(n)) == n`` for every integer n; inside years 1 to 9999 both
agree with `datetime.date`.

The calendar repeats every 400 years, which have 146,097 days. A year is taken to begin in March, so
that the leap day is its last day and a month's first day is linear in the month.
"""

from __future__ import annotations

_CYCLE_DAYS = 146_097
_EPOCH_FROM_0000_03_01 = 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of the month.

    >>> civil_from_days(0), civil_from_days(-719529)
    ((1970, 1, 1), (-1, 12, 31))
    """
    cycle, day = divmod(days + _EPOCH_FROM_0000_03_01, _CYCLE_DAYS)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day_of_month = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return 400 * cycle + year + (month <= 2), month, day_of_month


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day's number; `month` and `day` must be valid (`days_in_month`)."""
    year -= month <= 2
    cycle, year_of_cycle = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_cycle = 365 * year_of_cycle + year_of_cycle // 4 - year_of_cycle // 100 + day_of_year
    return cycle * _CYCLE_DAYS + day_of_cycle - _EPOCH_FROM_0000_03_01


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
