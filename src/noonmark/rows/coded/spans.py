"""Ranges as such: what lies between two edges, and how they are written.

Law (place): edges are compared by their places. At one value, an upper edge that has it not comes
before edges that have it, and a lower edge that has it not comes behind them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from noonmark.errors import InvalidValue

#: Infinite or not, the key of the value, and where the edge lies at the value.
Place = tuple[int, Any, int]


@dataclass(frozen=True, slots=True)
class Span:
    """What lies between two values; None is infinite."""

    low: Any
    high: Any
    low_in: bool
    high_in: bool
    start: Place
    end: Place
    empty: bool = False

    @classmethod
    def none(cls) -> Span:
        """The empty range."""
        return cls(None, None, False, False, (0, 0, 0), (0, 0, 0), empty=True)

    @classmethod
    def of(
        cls, low: Any, high: Any, low_in: bool, high_in: bool, key: Callable[[Any], Any]
    ) -> Span:
        """The range between two values, the lower of which is not above the other."""
        start = (-1, 0, 0) if low is None else (0, key(low), 0 if low_in else 1)
        end = (1, 0, 0) if high is None else (0, key(high), 0 if high_in else -1)
        both = low is not None and high is not None
        if both and (start[1] > end[1] or (start[1] == end[1] and not (low_in and high_in))):
            return cls.none()
        return cls(low, high, low_in and low is not None, high_in and high is not None, start, end)

    def between(self, other: Span) -> Span:
        """From the lower edge of this one to the upper edge of the other."""
        if self.start > other.end:
            return Span.none()
        if self.start[:2] == other.end[:2] and not (self.low_in and other.high_in):
            return Span.none()
        return Span(self.low, other.high, self.low_in, other.high_in, self.start, other.end)

    def touches(self, other: Span) -> bool:
        """Whether nothing lies between this one and the other, which comes behind it."""
        if self.high is None or other.low is None:
            return False
        return self.end[1] == other.start[1] and self.high_in != other.low_in

    def overlaps(self, other: Span) -> bool:
        """Whether something lies in both."""
        if self.empty or other.empty:
            return False
        return self.start <= other.end and other.start <= self.end

    def holds(self, other: Span) -> bool:
        """Whether the other one lies in this one."""
        if self.empty or other.empty:
            return other.empty
        return self.start <= other.start and other.end <= self.end

    def before(self, other: Span) -> bool:
        """Whether all of this one comes before all of the other."""
        return not self.empty and not other.empty and self.end < other.start

    def cut_before(self, other: Span) -> Span:
        """From the lower edge of this one up to the other."""
        end = (0, other.start[1], 0 if not other.low_in else -1)
        return Span(self.low, other.low, self.low_in, not other.low_in, self.start, end)

    def cut_behind(self, other: Span) -> Span:
        """From the other one up to the upper edge of this one."""
        start = (0, other.end[1], 0 if not other.high_in else 1)
        return Span(other.high, self.high, not other.high_in, self.high_in, start, self.end)

    def without(self, other: Span) -> list[Span]:
        """What is left of this one: up to two ranges."""
        if not self.overlaps(other):
            return [] if self.empty else [self]
        parts = []
        if self.start < other.start:
            parts.append(self.cut_before(other))
        if other.end < self.end:
            parts.append(self.cut_behind(other))
        return parts

    def common(self, other: Span) -> Span:
        """What lies in both."""
        if not self.overlaps(other):
            return Span.none()
        later = self if self.start >= other.start else other
        sooner = self if self.end <= other.end else other
        return later.between(sooner)

    def around(self, other: Span) -> Span:
        """The least range that both lie in; of equal edges it has those of the other."""
        if self.empty or other.empty:
            return other if self.empty else self
        sooner = self if self.start < other.start else other
        later = self if self.end > other.end else other
        return sooner.between(later)

    @staticmethod
    def apart(spans: Iterable[Span]) -> list[Span]:
        """Ranges that lie apart, in order, with the same in them."""
        found: list[Span] = []
        key = functools.cmp_to_key(_order)
        for span in sorted((each for each in spans if not each.empty), key=key):
            last = found[-1] if found else None
            if last is not None and (last.overlaps(span) or last.touches(span)):
                found[-1] = last.around(span)
            else:
                found.append(span)
        return found


def _order(a: Span, b: Span) -> int:
    one, other = (a.start, a.end), (b.start, b.end)
    return (one > other) - (one < other)


# --- as text


@dataclass(frozen=True)
class Texts:
    """How values are written and read."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


_SPACES = " \t\n\r\v\f"
_QUOTED = frozenset('"\\()[],' + _SPACES)


def shown(span: Span, texts: Texts) -> str:
    """The text of a range."""
    if span.empty:
        return "empty"
    low, high = ("" if x is None else _quoted(texts.write(x)) for x in (span.low, span.high))
    return f"{'[' if span.low_in else '('}{low},{high}{']' if span.high_in else ')'}"


def _quoted(text: str) -> str:
    if text and not _QUOTED & set(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def span_of_text(text: str, texts: Texts) -> tuple[Any, Any, bool, bool] | None:
    """The edges that a text names; None if the range is empty."""
    body = text.strip(_SPACES)
    if body[:5].lower() == "empty":
        if len(body) > 5:
            raise _malformed(text, 'Junk after "empty" key word.')
        return None
    if body[:1] not in ("[", "("):
        raise _malformed(text, "Missing left parenthesis or bracket.")
    low, at = _edge(text, body, 1)
    if body[at] != ",":
        raise _malformed(text, "Missing comma after lower bound.")
    high, at = _edge(text, body, at + 1)
    if body[at] == ",":
        raise _malformed(text, "Too many commas.")
    if body[at + 1 :]:
        raise _malformed(text, "Junk after right parenthesis or bracket.")
    values = [None if each is None else texts.read(each) for each in (low, high)]
    return values[0], values[1], body[0] == "[", body[at] == "]"


def _malformed(text: str, detail: str) -> InvalidValue:
    return InvalidValue(f'malformed range literal: "{text}"', detail=detail)


def _edge(text: str, body: str, at: int) -> tuple[str | None, int]:
    """One value, as it stands or in quotes, and the sign behind it; None if there is none."""
    if body[at : at + 1] in (",", ")", "]"):
        return None, at
    found, quoted = [], False
    while quoted or body[at : at + 1] not in (",", ")", "]"):
        if at >= len(body):
            raise _malformed(text, "Unexpected end of input.")
        sign = body[at]
        if sign == "\\":
            at += 1
            if at >= len(body):
                raise _malformed(text, "Unexpected end of input.")
            found.append(body[at])
        elif sign == '"' and quoted and body[at + 1 : at + 2] == '"':
            at += 1
            found.append('"')
        elif sign == '"':
            quoted = not quoted
        else:
            found.append(sign)
        at += 1
    return "".join(found), at


def ranges_of(text: str) -> list[str]:
    """The texts of the ranges in that of a multirange."""
    body = text.strip(_SPACES)
    if not body.startswith("{"):
        raise _bad(text, "Missing left brace.")
    found: list[str] = []
    at, wants = 1, False  # whether a comma was just read
    while True:
        at = _behind_spaces(body, at)
        sign = body[at : at + 1]
        if not sign:
            raise _bad(text, "Unexpected end of input.")
        if sign == "}" and not wants:
            break
        if body[at : at + 5].lower() == "empty":
            found.append("empty")
            at += 5
        elif sign in "[(":
            end = _range_end(text, body, at)
            found.append(body[at:end])
            at = end
        else:
            raise _bad(text, "Expected range start.")
        at = _behind_spaces(body, at)
        wants = body[at : at + 1] == ","
        if wants:
            at += 1
        elif body[at : at + 1] != "}":
            detail = (
                "Expected comma or end of multirange."
                if at < len(body)
                else ("Unexpected end of input.")
            )
            raise _bad(text, detail)
    if body[at + 1 :]:
        raise _bad(text, "Junk after closing right brace.")
    return found


def _behind_spaces(body: str, at: int) -> int:
    while body[at : at + 1] and body[at] in _SPACES:
        at += 1
    return at


def _range_end(text: str, body: str, at: int) -> int:
    quoted = False
    while at < len(body):
        sign = body[at]
        if sign == "\\":
            at += 1
        elif sign == '"':
            quoted = not quoted
        elif sign in "])" and not quoted:
            return at + 1
        at += 1
    raise _bad(text, "Unexpected end of input.")


def _bad(text: str, detail: str) -> InvalidValue:
    return InvalidValue(f'malformed multirange literal: "{text}"', detail=detail)
