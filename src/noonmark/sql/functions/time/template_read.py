"""to_date and to_timestamp of a text by a template, as PostgreSQL reads them.

The template has the nodes of `template`. A field of digits takes as many as its pattern has, or all
there are where what follows cannot be a digit (or FM says so); a word is one of its list, in any
case. A separator or blank of the template matches one of the text, or none; other text stands for
one character, whichever it is. With FX nothing is skipped.

What was read comes together in the order of PostgreSQL: the clock, the year with its century, the
day of Julius, ISO 8601's week, month and day, the day of the year. What is missing is that of
1 January 1 BC.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from noonmark.errors import DatetimeOutOfRange, InvalidDatetimeText, Unsupported
from noonmark.rows import types as t
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.time import instant as i
from noonmark.sql.functions.time.template import DAYS, JULIAN_1970, MONTHS, ROMAN, Node, nodes_of

_HINT = 'If your source string is not fixed-width, try using the "FM" modifier.'
_SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
_WEEK = (DAYS[-1], *DAYS[:-1])  # Sunday is the first
_NOON = ("am", "pm")
_ERAS = ("ad", "bc")

#: The field of each pattern of digits, and how many it takes.
_DIGITS = {
    **dict.fromkeys(("HH", "HH12", "HH24"), ("hour", 2)),
    "MI": ("minute", 2), "SS": ("second", 2), "SSSS": ("since", 4), "SSSSS": ("since", 5),
    "MM": ("month", 2), "DDD": ("doy", 3), "IDDD": ("doy", 3), "DD": ("day", 2), "D": ("dow", 1),
    "ID": ("dow", 1), "WW": ("week", 2), "IW": ("week", 2), "W": ("week_of_month", 1),
    "Q": ("", 1), "CC": ("century", 2), "J": ("julian", 1),
    **{name: ("year", len(name)) for name in ("YYYY", "YYY", "YY", "Y")},
    **{name: ("year", len(name)) for name in ("IYYY", "IYY", "IY", "I")},
    "MS": ("millis", 3), "US": ("micros", 6),
    **{f"FF{digits}": ("micros", digits) for digits in range(1, 7)},
}  # fmt: skip
_ISO = frozenset(("IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"))
_GREGORIAN = frozenset(
    ("DDD", "DD", "D", "MM", "MONTH", "MON", "RM", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y")
)
_SIGNS = ("A.M.", "P.M.", "AM", "PM", "A.D.", "B.C.", "AD", "BC")
_THEIR_EPOCH = days_from_civil(2000, 1, 1) * i.DAY
_INTEGER = re.compile(r"\s*[+-]?\d+")


@dataclass(slots=True)
class _Read:
    """What was read so far; 0 is what was not."""

    text: str
    at: int = 0
    values: dict[str, int] = field(default_factory=dict)
    is_iso: bool | None = None
    half_day: bool = False
    year_digits: int = 0
    precision: int | None = None  # of FF1 to FF6

    def get(self, name: str) -> int:
        return self.values.get(name, 0)

    def set(self, name: str, value: int, pattern: str) -> None:
        if self.get(name) not in (0, value):
            raise InvalidDatetimeText(
                f'conflicting values for "{pattern}" field in formatting string',
                detail="This value contradicts a previous setting for the same field type.",
            )
        self.values[name] = value

    def convention(self, pattern: str) -> None:
        if pattern not in _ISO | _GREGORIAN:
            return
        if self.is_iso not in (None, pattern in _ISO):
            raise InvalidDatetimeText(
                "invalid combination of date conventions",
                hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
            )
        self.is_iso = pattern in _ISO

    def skip_blanks(self) -> int:
        before = self.at
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at - before

    def word(self, words: tuple[str, ...], pattern: str) -> int:
        """Which of the words comes next; the first that fits."""
        rest = self.text[self.at :]
        for at, word in enumerate(words):
            if rest[: len(word)].lower() == word.lower():
                self.at += len(word)
                return at
        shown = rest.split()[0] if rest.strip() and not rest[0].isspace() else ""
        raise InvalidDatetimeText(
            f'invalid value "{shown}" for "{pattern}"',
            detail="The given value did not match any of the allowed values for this field.",
        )

    def integer(self, width: int, pattern: str, *, greedy: bool) -> tuple[int, int]:
        """The number that comes next, and how many characters it took."""
        before = self.at
        found: re.Match[str] | None
        if greedy:
            found = _INTEGER.match(self.text, self.at)
            self.skip_blanks()
            shown = self.text[self.at : self.at + width]
        else:
            self.skip_blanks()
            shown = self.text[self.at : self.at + width]
            if len(shown) < width:
                raise InvalidDatetimeText(
                    f'source string too short for "{pattern}" formatting field',
                    detail=f"Field requires {width} characters, but only {len(shown)} remain.",
                    hint=_HINT,
                )
            found = _INTEGER.match(shown)
            if found is not None and found.end() < width:
                raise InvalidDatetimeText(
                    f'invalid value "{shown}" for "{pattern}"',
                    detail=f"Field requires {width} characters, but only {found.end()} "
                    "could be parsed.",
                    hint=_HINT,
                )
        if found is None:
            raise InvalidDatetimeText(
                f'invalid value "{shown}" for "{pattern}"', detail="Value must be an integer."
            )
        self.at = found.end() if greedy else self.at + found.end()
        return _fitting(int(found.group()), pattern), self.at - before


def _fitting(value: int, pattern: str) -> int:
    if not -(2**31) <= value < 2**31:
        raise DatetimeOutOfRange(
            f'value for "{pattern}" in source string is out of range',
            detail=f"Value must be in the range {-(2**31)} to {2**31 - 1}.",
        )
    return value


def _is_separator(character: str) -> bool:
    return " " < character < "\x7f" and not character.isalnum()


def _takes_all(nodes: tuple[Node, ...], at: int) -> bool:
    """Whether a field of digits ends where the digits do."""
    node = nodes[at]
    if node.fills or node.ordinal or at + 1 == len(nodes):
        return True
    follows = nodes[at + 1]
    if follows.pattern:
        upper = follows.pattern.upper()
        return upper not in _DIGITS and upper not in ("Y,YYY", "TZM")
    return not follows.text[:1].isdigit()


def _read(text: str, template: str) -> _Read:
    read, fixed, extra = _Read(text), False, 0
    nodes = nodes_of(template)
    for at, node in enumerate(nodes):
        if read.at >= len(text):
            break
        upper = node.pattern.upper()
        if not fixed and upper != "FX" and (upper or at == 0):
            extra += read.skip_blanks()
        if not upper:
            for character in node.text:
                extra = _literal(read, node, character, extra, fixed=fixed)
            continue
        if upper == "FX":
            fixed = True
            continue
        read.convention(upper)
        _field(read, node, greedy=_takes_all(nodes, at))
        if not fixed:
            extra = read.skip_blanks()
    return read


def _literal(read: _Read, node: Node, character: str, extra: int, *, fixed: bool) -> int:
    """Text of the template; how many more characters were skipped than it has."""
    if read.at >= len(read.text):
        return extra
    there = read.text[read.at]
    if not node.quoted and (character.isspace() or _is_separator(character)):
        if fixed:
            read.at += 1
            return extra
        if there.isspace() or _is_separator(there):
            read.at += 1
            return extra
        return extra - 1
    if not fixed and extra > 0:
        return extra - 1
    read.at += 1
    return extra


def _field(read: _Read, node: Node, *, greedy: bool) -> None:
    shown, upper = node.pattern, node.pattern.upper()
    if upper in _SIGNS:
        dotted = "." in upper
        words = _NOON if upper[0] in "AP" and "M" in upper else _ERAS
        spelled = tuple(f"{word[0]}.{word[1]}." for word in words) if dotted else words
        read.set("pm" if words is _NOON else "bc", read.word(spelled, shown), shown)
        read.half_day = read.half_day or words is _NOON
        return
    if upper in ("MONTH", "MON"):
        names = MONTHS if upper == "MONTH" else _SHORT_MONTHS
        read.set("month", read.word(names, shown) + 1, shown)
    elif upper in ("DAY", "DY"):
        names = _WEEK if upper == "DAY" else tuple(name[:3] for name in _WEEK)
        # As in PostgreSQL: said twice, it is one day later, and contradicts itself.
        read.set("dow", read.word(names, shown), shown)
        read.values["dow"] += 1
    elif upper == "RM":
        read.set("month", 12 - read.word(tuple(reversed(ROMAN)), shown), shown)
    elif upper == "Y,YYY":
        _comma_year(read, shown)
    elif upper in _DIGITS:
        _number(read, upper, shown, greedy=greedy)
    else:
        raise Unsupported(f'the pattern "{shown}" of to_timestamp and to_date is not supported')
    if node.ordinal:
        read.at += 2


def _comma_year(read: _Read, shown: str) -> None:
    found = re.compile(r"\s*([+-]?\d+),\s*([+-]?\d{1,3})").match(read.text, read.at)
    if found is None:
        raise InvalidDatetimeText('invalid input string for "Y,YYY"')
    read.set("year", _fitting(int(found[1]) * 1000 + int(found[2]), shown), shown)
    read.year_digits, read.at = 4, found.end()


def _number(read: _Read, upper: str, shown: str, *, greedy: bool) -> None:
    name, width = _DIGITS[upper]
    value, taken = read.integer(width, shown, greedy=greedy)
    if not name:
        return  # a quarter says nothing of the day
    read.set(name, value, shown)  # as it is written: PostgreSQL compares that
    if name in ("millis", "micros"):
        read.values[name] *= 10 ** max(0, (3 if name == "millis" else 6) - taken)
        read.precision = width if upper.startswith("FF") else read.precision
    elif name == "year":
        read.year_digits = width
        if width < 4 and taken < 4:
            read.values[name] = _near_2020(value)
    elif upper in ("HH", "HH12"):
        read.half_day = True
    elif upper == "ID":
        read.values[name] = value + 1 if value < 7 else 1


def _near_2020(year: int) -> int:
    for below, more in ((70, 2000), (100, 1900), (520, 2000), (1000, 1000)):
        if year < below:
            return year + more
    return year


# --- from what was read to a point of the calendar


def _clock(read: _Read) -> tuple[int, int, int, int]:
    """Hour, minute, second and microseconds; not yet whether there is such a time."""
    since = read.get("since")
    hour, minute, second = int(since / 3600), int(math.fmod(since, 3600) / 60), since % 60
    second -= 60 if since < 0 and second else 0
    second = read.get("second") or second
    minute = read.get("minute") or minute
    hour = read.get("hour") or hour
    if read.half_day:
        if not 1 <= hour <= 12:
            raise InvalidDatetimeText(
                f'hour "{hour}" is invalid for the 12-hour clock',
                hint="Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + 12 * read.get("pm")
    return hour, minute, second, read.get("millis") * 1000 + read.get("micros")


def _micros(text: str, template: str) -> tuple[int, _Read]:
    """Microseconds since 1970, and what they were read from."""
    read = _read(text, template)
    hour, minute, second, micros = _clock(read)
    days = _days(read, text)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= micros < i.SECOND):
        raise _out_of_range(text)
    clock = hour * i.HOUR + minute * i.MINUTE + second * i.SECOND + micros
    return days * i.DAY + clock, read


def _out_of_range(text: str) -> DatetimeOutOfRange:
    return DatetimeOutOfRange(f'date/time field value out of range: "{text}"')


def _year(read: _Read) -> int | None:
    """Astronomically: 0 is 1 BC; None where nothing says."""
    year, century, bc = read.get("year"), read.get("century"), read.get("bc")
    century = -century if bc else century
    if year and century and read.year_digits <= 2:
        rest = year - 100 * int(year / 100)
        if not rest:
            return century * 100 + (century < 0)
        return (century - 1) * 100 + rest if century >= 0 else (century + 1) * 100 - rest + 1
    if year:
        year = -year if bc else year
        return year + (year < 0)
    if century:
        return (century - 1) * 100 + 1 if century >= 0 else century * 100 + 1
    return None


def _monday(year: int, week: int) -> int:
    fourth = days_from_civil(year, 1, 4)
    return fourth - (fourth + 3) % 7 + (week - 1) * 7


def _days(read: _Read, text: str) -> int:
    """Days since 1970."""
    said = _year(read)
    year, month, day = said or 0, 1, 1
    known = {"year"} if said is not None else set()
    doy = read.get("doy")
    if read.get("julian"):
        year, month, day = civil_from_days(read.get("julian") - JULIAN_1970)
        known = {"year", "month", "day"}
    if week := read.get("week"):
        if read.is_iso:
            dow = read.get("dow")
            monday = _monday(year, week)
            year, month, day = civil_from_days(monday + ((dow - 2) % 7 if dow else 0))
            known = {"year", "month", "day"}
        else:
            doy = (week - 1) * 7 + 1
    dd = (read.get("week_of_month") - 1) * 7 + 1 if read.get("week_of_month") else read.get("day")
    if dd:
        day, known = dd, known | {"day"}
    if read.get("month"):
        month, known = read.get("month"), known | {"month"}
    if doy and (month <= 1 or day <= 1):
        if not year and not read.get("bc"):
            raise InvalidDatetimeText("cannot calculate day of year without year information")
        year, month, day = _by_day_of_year(read, (year, month, day), doy)
        known = known | {"month", "day"}
    _check(year, month, day, known, text)
    return days_from_civil(year, month, 1) + day - 1


def _by_day_of_year(read: _Read, date: tuple[int, int, int], doy: int) -> tuple[int, int, int]:
    """Month and day, where they are not said, from the day of the year; month 0 is none."""
    year, month, day = date
    if read.is_iso:
        return civil_from_days(_monday(year, 1) - 1 + doy)
    ends = [days_from_civil(year, at, 1) - days_from_civil(year, 1, 1) for at in range(1, 13)]
    found = sum(doy > end for end in ends)
    if not found or doy > ends[-1] + 31:
        return year, 0, 0
    return year, found if month <= 1 else month, doy - ends[found - 1] if day <= 1 else day


def _check(year: int, month: int, day: int, known: set[str], text: str) -> None:
    if "month" in known and not 1 <= month <= 12:
        raise _out_of_range(text)
    if "day" in known and not 1 <= day <= 31:
        raise _out_of_range(text)
    if len(known) == 3 and day > days_in_month(year, month):
        raise _out_of_range(text)


def _to_timestamp(text: str, template: str) -> i.Stamp:
    micros, read = _micros(text, template)
    if read.precision is not None:
        # Half away from PostgreSQL's own epoch.
        unit, since = 10 ** (6 - read.precision), micros - _THEIR_EPOCH
        rounded = (abs(since) + unit // 2) // unit * unit
        micros = _THEIR_EPOCH + (rounded if since >= 0 else -rounded)
    return i.timestamptz(micros)


def _to_date(text: str, template: str) -> i.Date:
    return i.date(_micros(text, template)[0] // i.DAY)


TABLE = (
    Function("to_timestamp", (t.Text, t.Text), t.TimestampTz(), _to_timestamp, fallible=True),
    Function("to_date", (t.Text, t.Text), t.Date(), _to_date, fallible=True),
)
