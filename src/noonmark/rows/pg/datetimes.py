"""Dates and times in all the forms that PostgreSQL reads (DateStyle ISO, MDY).

A text is cut into fields (`fields_of`): dates, times, numbers, words, offsets. Each field says what
it can be, given what was there before: ``Jan 8 1999``, ``1/8/99``, ``19990108 040506-8``,
``J2451187``, ``08-Jan-1999 4:05 PM EST``. `Reading` follows PostgreSQL's own rules field by field,
also where they are odd, so that the same texts are read, as the same times, and refused alike.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import NoReturn

from noonmark.errors import FieldOverflow, InvalidArgument, InvalidDatetime, InvalidValue
from noonmark.rows import value as v
from noonmark.rows.abbreviation import CHANGED, MINUTES
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month
from noonmark.rows.pg.fields import (
    WORDS,
    Field,
    UnknownZone,
    Unreadable,
    fraction,
    offset_of,
    whole,
)
from noonmark.rows.zone import local_offset, zone_named

_DATE = frozenset(("year", "month", "day"))
_TIME = frozenset(("hour", "minute", "second"))
_PART = re.compile(r"[^0-9a-z]*([0-9]+|[a-z]+)")


class Reading:
    """What is known of a date and time so far; `has` are the parts that are."""

    def __init__(self, fields: list[Field]) -> None:
        self.fields = fields
        self.has: set[str] = set()
        self.constant = ""
        self.year = self.month = self.day = self.yday = 0
        self.hour = self.minute = self.second = self.micros = 0
        self.offset: int | None = None
        self.zone: dt.tzinfo | None = None
        self.prefix = ""  # what the next field was said to be
        self.half: int | None = None
        self.text_month = self.two_digits = self.is_bc = self.is_julian = False
        for at, (kind, value) in enumerate(fields):
            given = self.take(at, kind, value)
            if given & self.has:
                raise Unreadable
            self.has |= given
        if self.prefix:
            raise Unreadable

    def take(self, at: int, kind: str, value: str) -> set[str]:
        """Read one field; what it gives."""
        match kind:
            case "date":
                return self.date_field(at, value)
            case "time":
                self.prefix_is_time()
                return self.time(value)
            case "zone":
                self.offset = offset_of(value)
                return {"tz"}
            case "number":
                return self.labelled(value) if self.prefix else self.number_field(at, value)
        return self.word(value)

    # -- dates ------------------------------------------------------------------------------------

    def date_field(self, at: int, value: str) -> set[str]:  # noqa: ARG002 - another form asks
        """A date with marks, the name of a zone, or a time with an offset at its end."""
        if self.prefix == "julian":
            match = re.match(r"(\d*)(.*)", value, re.ASCII | re.DOTALL)
            assert match is not None
            self.julian(whole(match[1] or "0"))
            self.prefix = ""
            self.offset = offset_of(match[2])
            return {*_DATE, *_TIME, "tz"}
        if not self.prefix and not {"month", "day"} <= self.has:
            return self.date(value)
        return self.late_date_field(value, set())

    def late_date_field(self, value: str, assumed: set[str]) -> set[str]:
        """Behind a date: a time with an offset, or a zone by its name."""
        if not (value[0].isdigit() or self.prefix):
            self.zone = self.named(value, UnknownZone)
            return {"tz"}
        self.prefix_is_time()
        if self.has >= _TIME or "-" not in value:
            raise Unreadable
        cut = value.index("-")
        self.offset = offset_of(value[cut:])
        return self.together(value[:cut], assumed) | {"tz"}

    def date(self, text: str) -> set[str]:
        """A date whose parts have marks between them, in whatever order they tell."""
        parts, at = [], 0
        while at < len(text):
            match = _PART.match(text, at)
            if match is None:
                raise Unreadable
            parts.append(match[1])
            at = match.end() + 1  # the next character is a mark, whatever it is
        before, given = set(self.has), set[str]()
        had_month = False
        for part in parts:
            if part.isalpha():
                kind, number = WORDS.get(part, ("", 0))
                if kind == "ignored":
                    continue
                if kind != "month" or "month" in before | given:
                    raise Unreadable
                self.month, had_month = number, True
                given.add("month")
        for part in parts:
            if part.isdigit():
                found = self.number(part, had_month, before | given)
                if found & (before | given):
                    raise Unreadable
                given |= found
        if (before | given) - {"doy", "tz"} != _DATE:
            raise Unreadable
        return given

    def julian(self, day: int) -> None:
        """The date of a Julian day."""
        self.year, self.month, self.day = civil_from_days(day - 2_440_588)
        self.is_julian = True

    # -- numbers ----------------------------------------------------------------------------------

    def labelled(self, value: str) -> set[str]:
        """A number behind a word that says what it is."""
        prefix, self.prefix = self.prefix, ""
        number_text, point, rest = value.partition(".")
        day = whole(number_text or "0")
        if prefix == "isotime":
            given = self.together(value, set(_DATE))
            if given != _TIME:
                raise Unreadable
            return given
        if prefix != "julian":
            raise Unreadable
        self.julian(day)
        if not point:
            return set(_DATE)
        seconds, self.micros = divmod(int(float(f"0.{rest or 0}") * v.DAY_MICROS), 1_000_000)
        minutes, self.second = divmod(seconds, 60)
        self.hour, self.minute = divmod(minutes, 60)
        return {*_DATE, *_TIME}

    def number_field(self, at: int, value: str) -> set[str]:  # noqa: ARG002 - another form asks
        """A number alone: a year, a month or a day, or several of them run together."""
        point = value.find(".")
        if point >= 0 and not self.has & _DATE:
            return self.date(value)
        several = point > 2 if point >= 0 else len(value) >= 6
        if several and (point >= 0 or not (self.has & _DATE and self.has & _TIME)):
            return self.together(value, set())
        return self.number(value, self.text_month, self.has)

    def number(self, value: str, text_month: bool, has: set[str]) -> set[str]:
        """A single number, which is what is lacking."""
        number_text, point, rest = value.partition(".")
        number = whole(number_text) if number_text else self.unreadable()
        if point:
            if len(number_text) > 2:
                return self.together(value, set(_DATE))
            self.micros = fraction(rest)
        known = has & _DATE
        if len(value) == 3 and known == {"year"} and 1 <= number <= 366:
            self.yday = number
            return {"doy", "month", "day"}
        if known == _DATE:
            return self.together(value, set(), has)
        part = self._lacking(known, len(value), text_month)
        if part == "swapped":
            self.day, self.year, self.two_digits = self.year, number, False
            return {"day"}
        setattr(self, part, number)
        if part == "year":
            self.two_digits = len(value) <= 2
        return {part}

    def _lacking(self, known: set[str], length: int, text_month: bool) -> str:
        if not known:
            return "year" if length >= 3 else "month"
        if known in ({"year"}, {"day"}):
            return "month"
        if known == {"month"}:
            return "year" if text_month and length >= 3 else "day"
        if known == {"year", "month"}:
            return "swapped" if text_month and length >= 3 and self.two_digits else "day"
        if known == {"month", "day"}:
            return "year"
        raise Unreadable

    def together(self, value: str, assumed: set[str], known: set[str] | None = None) -> set[str]:
        """Numbers run together: yyyymmdd, yymmdd, hhmmss or hhmm."""
        if not re.fullmatch(r"[0-9.]*", value):
            raise Unreadable
        has = (self.has if known is None else known) | assumed
        digits, point, rest = value.partition(".")
        if point:
            self.micros = fraction(rest)
        elif not has >= _DATE and len(digits) >= 6:
            self.year, self.month, self.day = (
                min(int(digits[:-4]), v.INT32_MAX),
                int(digits[-4:-2]),
                int(digits[-2:]),
            )
            self.two_digits = self.two_digits or len(digits) == 6
            return set(_DATE)
        if not has >= _TIME and len(digits) in (4, 6):
            self.hour, self.minute = int(digits[:2]), int(digits[2:4])
            self.second = int(digits[4:] or 0)
            return set(_TIME)
        raise Unreadable

    # -- times and words --------------------------------------------------------------------------

    def prefix_is_time(self) -> None:
        """Whatever was announced must have been a time."""
        if self.prefix not in ("", "isotime"):
            raise Unreadable
        self.prefix = ""

    def time(self, value: str) -> set[str]:
        """A time with colons; of two parts with a point, minutes and seconds."""
        match = re.fullmatch(r"(\d+):(\d*)(?::(\d*))?(?:\.(.*))?", value, re.ASCII)
        if match is None:
            raise Unreadable
        first, second, third = (whole(match[at] or "0") for at in (1, 2, 3))
        self.micros = fraction(match[4] or "")
        if match[3] is None and match[4] is not None:
            first, second, third = 0, first, second
        if second > 59 or third > 60:
            raise Unreadable(FieldOverflow)
        self.hour, self.minute, self.second = first, second, third
        self.check_time_early()
        return set(_TIME)

    def check_time_early(self) -> None:
        """Of a date and time, before AM and PM are looked at."""
        self.check_time()

    def check_time(self) -> None:
        """That it is a time of a day."""
        if self.minute > 59 or self.second > 60 or self.clock > v.DAY_MICROS:
            raise Unreadable(FieldOverflow)

    @property
    def clock(self) -> int:
        """Microseconds since midnight."""
        return ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.micros

    def word(self, value: str) -> set[str]:
        """A word: of a zone, a month, a constant, or one that says what the next field is."""
        if value in MINUTES:
            self.offset = MINUTES[value] * 60
            return {"tz"}
        if value in CHANGED:
            raise Unreadable(v.NotHeld, f'the time zone abbreviation "{value}" is not supported')
        kind, number = WORDS.get(value, ("zone", 0))
        match kind:
            case "ignored":
                return set()
            case "month":
                return self._month_word(number)
            case "half":
                self.half = number
            case "era":
                self.is_bc = number == 1
            case "units" | "isotime":
                self.announce(kind, number)
                return set()
            case "zone":
                self.zone = self.named(value, InvalidDatetime)
                return {"tz"}
            case "summer":
                self.offset = (self.offset or 0) + 3600
            case "clock":
                raise Unreadable(v.NotHeld, f'"{value}" depends on the clock: it is not supported')
            case _:
                return self.reserved(kind, value)
        return {kind}

    def _month_word(self, number: int) -> set[str]:
        given = "month"
        if "month" in self.has and not self.text_month and "day" not in self.has:
            if not 1 <= self.month <= 31:
                raise Unreadable
            self.day, given = self.month, "day"
        self.text_month, self.month = True, number
        return {given}

    def announce(self, kind: str, number: int) -> None:
        """The next field is told."""
        if self.prefix or (kind == "isotime" and not self.has >= _DATE):
            raise Unreadable
        self.prefix = "isotime" if kind == "isotime" else "julian" if number else "units"

    def reserved(self, kind: str, value: str) -> set[str]:
        """Words that are a whole date or time, and a day of the week, which says nothing."""
        match kind:
            case "zulu":
                self.hour = self.minute = self.second = 0
                self.offset = 0
                return {*_TIME, "tz"}
            case "constant":
                self.constant = value
                return {*_DATE, *_TIME, "tz"}
            case "dow":
                return {"dow"}
        raise Unreadable

    def named(self, name: str, unknown: type[InvalidValue]) -> dt.tzinfo:
        """The zone of a name."""
        try:
            return zone_named(name)
        except InvalidArgument:
            raise Unreadable(unknown, f'time zone "{name}" not recognized') from None

    def unreadable(self) -> NoReturn:
        """It is none."""
        raise Unreadable

    # -- the end ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Check the date, and make one time of the halves of a day."""
        if "year" in self.has and not self.is_julian:
            self._settle_year()
        if "doy" in self.has:
            days = days_from_civil(self.year, 1, 1) + self.yday - 1
            self.year, self.month, self.day = civil_from_days(days)
        if "month" in self.has and not 1 <= self.month <= 12:
            raise Unreadable(FieldOverflow)
        if "day" in self.has and not 1 <= self.day <= 31:
            raise Unreadable(FieldOverflow)
        if self.has >= _DATE and self.day > days_in_month(self.year, self.month):
            raise Unreadable(FieldOverflow)
        if self.half is not None:
            if self.hour > 12:
                raise Unreadable(FieldOverflow)
            self.hour = self.hour % 12 + 12 * self.half

    def _settle_year(self) -> None:
        if self.is_bc:
            if self.year <= 0:
                raise Unreadable(FieldOverflow)
            self.year = 1 - self.year
        elif self.two_digits:
            self.year += 2000 if self.year < 70 else 1900 if self.year < 100 else 0
        elif self.year <= 0:
            raise Unreadable(FieldOverflow)

    def check_summer(self) -> None:
        """DST says something only of an offset."""
        if "summer" in self.has and ("tz" not in self.has or self.zone is not None):
            raise Unreadable

    def days(self) -> int:
        """The day, of a date that is whole; whatever the time says."""
        self.local()
        return days_from_civil(self.year, self.month, self.day)

    def local(self) -> tuple[int, int | None]:
        """Microseconds that clocks show, and how many seconds they are before UTC, if it says."""
        self.settle()
        if not self.has >= _DATE:
            raise Unreadable
        self.check_summer()
        days = days_from_civil(self.year, self.month, self.day)
        micros = days * v.DAY_MICROS + self.clock
        if self.zone is not None:
            self.offset = local_offset(micros, self.zone) // 1_000_000
        return micros, self.offset


class TimeReading(Reading):
    """A time of day; a date beside it is read only to be passed over."""

    def date_field(self, at: int, value: str) -> set[str]:
        """A date before a time, or what may stand behind a time."""
        kinds = [kind for kind, _ in self.fields]
        if at == 0 and len(kinds) >= 2 and (kinds[-1] == "date" or kinds[1] == "time"):
            return self.date(value)
        if value[0].isdigit() or not self.prefix:
            prefix, self.prefix = self.prefix, ""
            given = self.late_date_field(value, set(_DATE))
            self.prefix = prefix
            return given
        self.zone = self.named(value, UnknownZone)
        return {"tz"}

    def number_field(self, at: int, value: str) -> set[str]:
        """Numbers run together, or a date with points."""
        point = value.find(".")
        if point >= 0:
            if at == 0 and len(self.fields) >= 2 and self.fields[-1][0] == "date":
                return self.date(value)
            if point > 2:
                return self.together(value, set(_DATE))
            raise Unreadable
        if len(value) > 4:
            return self.together(value, set(_DATE))
        return self.number(value, False, self.has | _DATE)

    def check_time_early(self) -> None:
        """It is looked at when all is known."""

    def announce(self, kind: str, number: int) -> None:
        """The next field is told, whatever was before."""
        if self.prefix:
            raise Unreadable
        self.prefix = "isotime" if kind == "isotime" else "julian" if number else "units"

    def reserved(self, kind: str, value: str) -> set[str]:
        """There is midnight."""
        if kind != "zulu":
            raise Unreadable
        return super().reserved(kind, value)

    def _month_word(self, number: int) -> set[str]:  # noqa: ARG002
        raise Unreadable

    def time_of_day(self) -> int:
        """Microseconds since midnight."""
        self.settle()
        self.check_time()
        if not self.has >= _TIME:
            raise Unreadable
        self.check_summer()
        dated = self.has >= _DATE
        if self.zone is not None and self.zone.utcoffset(None) is None and not dated:
            raise Unreadable
        if "tz" not in self.has and self.has & _DATE and not dated:
            raise Unreadable
        return self.clock
