"""The fields of a text of a date or time: dates, times, numbers, words and offsets.

A text is cut as PostgreSQL cuts it: by what a field starts with, and what may go on with it.
"""

from __future__ import annotations

import re

from noonmark.errors import FieldOverflow, InvalidDatetime, InvalidOffset, InvalidValue
from noonmark.rows import value as v


class UnknownZone(InvalidValue, id="unknown_zone", sqlstate="22023"):
    """A time zone that nobody knows."""


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_LONG = "january february march april may june july august september october november december"
_UNITS = "d dow doy h isodow isoyear m mm s y"
_DAYS = "mon tue wed thu fri sat sun tues weds thur thurs monday tuesday wednesday thursday friday"
#: Words that are no zone: what they are, and their value.
WORDS: dict[str, tuple[str, int]] = {
    **{word: ("month", at) for at, word in enumerate(_MONTHS, 1)},
    **{word: ("month", at) for at, word in enumerate(_LONG.split(), 1)},
    **dict.fromkeys([*_DAYS.split(), "saturday", "sunday"], ("dow", 0)),
    **dict.fromkeys(("at", "on"), ("ignored", 0)),
    **dict.fromkeys(_UNITS.split(), ("units", 0)),
    **dict.fromkeys(("j", "jd", "julian"), ("units", 1)),
    **dict.fromkeys(("now", "today", "tomorrow", "yesterday"), ("clock", 0)),
    **dict.fromkeys(("infinity", "+infinity", "-infinity", "epoch"), ("constant", 0)),
    "sept": ("month", 9),
    "am": ("half", 0),
    "pm": ("half", 1),
    "ad": ("era", 0),
    "bc": ("era", 1),
    "allballs": ("zulu", 0),
    "dst": ("summer", 0),
    "t": ("isotime", 0),
}
_FIELDS_MAX, _LENGTH_MAX = 25, 128
_NUMBER = re.compile(r"\d+", re.ASCII)
_FIELD = re.compile(
    r"""
      (?P<time>\d+:[\d:.]*)
    | (?P<date>\d+(?P<mark>[-/.])(?:\d+(?P=mark)(?:\d|(?P=mark))*|(?!\d)(?:[A-Za-z0-9]|(?P=mark))*)
          | \d+[-/]\d+)
    | (?P<number>\d+\.\d+|\d+|\.\d*)
    | (?P<word>[A-Za-z]+)
    | (?P<zone>[+-]\s*\d[\d:.-]*)
    | (?P<special>[+-]\s*[A-Za-z]+)
    """,
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(r"[-+/_.:A-Za-z0-9]+", re.ASCII)
_PUNCTUATION = frozenset("!\"#$%&'()*,/:;<=>?@[\\]^_`{|}~")

Field = tuple[str, str]


class Unreadable(Exception):
    """The text is no date or time: the error that says so is of this kind."""

    def __init__(self, kind: type[InvalidValue] = InvalidDatetime, what: str = "") -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what


def fields_of(text: str, length_max: int = _LENGTH_MAX) -> list[Field]:
    """The fields of a text, with their kinds; words are in lower case."""
    fields: list[Field] = []
    at = 0
    while at < len(text):
        if text[at] in " \t\n\v\f\r" or (text[at] in _PUNCTUATION and text[at] != "."):
            at += 1
            continue
        match = _FIELD.match(text, at)
        if match is None:
            raise Unreadable
        kind, value, at = str(match.lastgroup), match[0].lower(), match.end()
        if kind == "mark":
            kind = "date"
        follows = text[at : at + 1]
        if kind == "word" and follows:
            is_name = follows in "-/." or (value not in WORDS and follows in "+0123456789")
            if is_name and (name := _NAME.match(text, at)):
                kind, value, at = "date", value + name[0].lower(), name.end()
        fields.append((kind, re.sub(r"\s", "", value)))
    if len(fields) > _FIELDS_MAX or sum(len(value) + 1 for _, value in fields) > length_max:
        raise Unreadable
    return fields


def whole(digits: str) -> int:
    """A number that is not too large for any field."""
    number = int(digits)
    if number > v.INT32_MAX:
        raise Unreadable(FieldOverflow)
    return number


def fraction(digits: str) -> int:
    """What stands behind a point, as microseconds, rounded as PostgreSQL's floats are."""
    if digits and not (digits.isascii() and digits.isdigit()):
        raise Unreadable
    return round(float(f"0.{digits or 0}") * 1e6)


def offset_of(text: str) -> int:
    """The seconds of an offset with its sign."""
    match = re.fullmatch(
        r"([+-])([+-]?\d*)(?::([+-]?\d*)(?::([+-]?\d*))?)?(.*)", text, re.ASCII | re.DOTALL
    )
    if match is None:
        raise Unreadable
    hour, minute, second = (int((match[at] or "").strip("+") or 0) for at in (2, 3, 4))
    if match[3] is None and len(text) > 3 and not match[5] and hour >= 0:
        hour, minute = divmod(hour, 100)
    if not 0 <= hour <= 15 or not 0 <= minute <= 59 or not 0 <= second <= 59:
        raise Unreadable(InvalidOffset)
    if match[5]:
        raise Unreadable
    seconds = (hour * 60 + minute) * 60 + second
    return -seconds if match[1] == "-" else seconds
