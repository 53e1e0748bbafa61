"""to_char of numbers by a template, as PostgreSQL writes them without a locale of its own.

`number_pattern` reads a template. The number is written with exactly as many digits as it asks for,
and given to its nodes from left to right: each place of a digit takes the next one, or a blank
while the number has not begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from noonmark.errors import OutOfRange
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.number_pattern import Asked, ordinal, read

_WIDE = Context(prec=200_000, Emax=999_999_999, Emin=-999_999_999)
_DIGITS = {t.Double: 15, t.Real: 6}
_OVERFLOW = "#" * 15


class _Writer:
    """One number through the nodes of a template; the names are those of its states."""

    def __init__(self, asked: Asked, number: str, blanks: int, sign: str) -> None:
        self.number, self.blanks, self.sign = number, blanks, sign
        self.flags, self.sign_at = set(asked.flags), asked.sign_at
        self.behind = asked.behind
        self.zero_start = max(asked.zero_start - 1, 0)
        self.out: list[str] = []
        self.at = self.place = 0  # in the number; among the places of the template
        self.began = False
        self.fills = asked.has("FM")
        if asked.flags & {"PL", "MI"}:
            self.signed = not (asked.has("PL") and not asked.has("MI"))
        else:
            if sign != "-" and self.fills:
                self.flags.discard("PR")
            self.signed = sign == "+" and self.fills and not asked.has("S")
            if self.sign_at == "before" and asked.before == asked.sign_digits:
                self.sign_at = "behind"
        self.count = asked.before + asked.behind - 1
        self.last = self._last_relevant(asked)
        if not self.signed and blanks == 0:
            self.count += 1

    def _last_relevant(self, asked: Asked) -> int | None:
        """Up to where digits behind the point are written in fill mode."""
        point = self.number.find(".")
        if not self.fills or not asked.has(".") or point < 0:
            return None
        kept = self.number.rstrip("0")
        last = max(point, len(kept) - 1)
        if asked.zero_end > self.blanks:
            last = max(last, min(len(self.number) - 1, asked.zero_end - self.blanks))
        return last

    @property
    def _before_point(self) -> bool:
        """Whether the zero before the point is at hand, for which a blank stands."""
        first = self.at == 0 and self.number[:1] == "0"
        return "0" not in self.flags and first and self.behind != 0

    @property
    def _ends_at_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def digit(self, pattern: str) -> None:
        """A place of a digit, or of the point."""
        self.began = False
        zeros = "0" in self.flags
        starts = self.place >= self.blanks or (zeros and self.zero_start == self.place)
        if not self.signed and starts and (not self._before_point or self._ends_at_point):
            self._write_sign()
        if self.place < self.blanks and (self.zero_start > self.place or not zeros):
            self.out.append("" if self.fills else " ")
        elif zeros and self.place < self.blanks and self.zero_start <= self.place:
            self.out.append("0")
            self.began = True
        else:
            self._write_next(pattern)
        end = self.count + (self.blanks > 0) + ("." in self.flags)
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 == end:
            if self.signed and "PR" in self.flags:
                self.out.append(" " if self.sign == "+" else ">")
            elif "S" in self.flags and self.sign_at == "behind":
                self.out.append(self.sign)
        self.place += 1

    def _write_sign(self) -> None:
        if "S" in self.flags:
            if self.sign_at == "before":
                self.out.append(self.sign)
                self.signed = True
            return
        if "PR" in self.flags:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "+":
            self.out.append("" if self.fills else " ")
        else:
            self.out.append("-")
        self.signed = True

    def _write_next(self, pattern: str) -> None:
        digit = self.number[self.at] if self.at < len(self.number) else "\0"
        if digit == ".":
            self.out.append(".")
        elif self.last is not None and self.at > self.last and pattern != "0":
            pass
        elif self._before_point:
            if not self.fills:
                self.out.append(" ")
            elif self._ends_at_point:
                self.out.append("0")
        else:
            self.out.append(digit)
            self.began = True
        if digit != "\0":
            self.at += 1

    def other(self, pattern: str) -> None:
        """A pattern that is no place of a digit."""
        upper = pattern.upper()
        if upper in (",", "G"):
            self.out.append("," if self.began else "" if self.fills else " ")
        elif upper == "L":
            self.out.append(" ")
        elif upper == "TH":
            if self.number[:1] != "#" and self.sign != "-" and "." not in self.flags:
                self.out.append(ordinal(self.number, pattern))
        elif upper in ("MI", "PL"):
            mark = "-" if upper == "MI" else "+"
            self.out.append(mark if self.sign == mark else "" if self.fills else " ")
        elif upper == "SG":
            self.out.append(self.sign)


_PLACES = ("0", "9", ".", "D", "d")


def _laid_out(template: str, asked: Asked, digits: str) -> str:
    """Digits with a sign, in the places of a template."""
    sign = "-" if digits.startswith("-") else "+"
    number = digits.lstrip("-")
    width = number.find(".") if "." in number else len(number)
    blanks = max(asked.before - width, 0)
    if width > asked.before:
        number = "#" * asked.before + "." + "#" * asked.behind
    writer = _Writer(asked, number, blanks, sign)
    for pattern, text in read(template)[0]:
        if text:
            writer.out.append(text)
        elif pattern in _PLACES:
            writer.digit(pattern)
        else:
            writer.other(pattern)
    return "".join(writer.out).partition("\0")[0]


def _roman(template: str, number: int | None) -> str:
    text = _OVERFLOW
    if number is not None and 0 < number < 4000:
        text, left = "", number
        for sign, worth in _ROMAN:
            text += sign * (left // worth)
            left %= worth
    nodes, asked = read(template)
    parts = []
    for pattern, literal in nodes:
        if literal:
            parts.append(literal)
        elif pattern.upper() == "RN":
            own = text.lower() if pattern == "rn" else text
            parts.append(own if asked.has("FM") else f"{own:>15}")
        elif pattern in ("L", "l") or (pattern in (",", "G", "g") and not asked.has("FM")):
            parts.append(" ")
    return "".join(parts)


_ROMAN = (
    *(("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50)),
    *(("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1)),
)


def _no_exponent(asked: Asked) -> str:
    """What stands for a number that has no exponent."""
    text = [" ", *"#" * (asked.before + asked.behind + 5)]
    text[asked.before + 1] = "."
    return "".join(text)


def _scientific(number: Decimal, asked: Asked) -> str:
    if not number.is_finite():
        return _no_exponent(asked)
    exponent = number.adjusted() if number else 0
    scaled = _WIDE.scaleb(number, -exponent).quantize(
        Decimal(1).scaleb(-asked.behind), ROUND_HALF_UP, _WIDE
    )
    text = f"{scaled:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    return text if text.startswith("-") else f" {text}"


def _of_numeric(number: Decimal, template: str) -> str:
    asked = read(template)[1] if template else None
    if asked is None:
        return ""
    if asked.has("RN"):
        fits = number.is_finite() and abs(number) < 10_000
        return _roman(template, int(number.quantize(Decimal(1), ROUND_HALF_UP)) if fits else None)
    if asked.has("EEEE"):
        return _scientific(number, asked)
    if asked.has("V"):
        number = _WIDE.scaleb(number, asked.shift) if number.is_finite() else number
        asked = replace(asked, before=asked.before + asked.shift)
    if not number.is_finite():
        text = "NaN" if number.is_nan() else "Infinity"
        return _laid_out(template, asked, f"-{text}" if number.is_signed() else text)
    rounded = number.quantize(Decimal(1).scaleb(-asked.behind), ROUND_HALF_UP, _WIDE)
    return _laid_out(template, asked, f"{rounded if rounded else abs(rounded):f}")


def _of_whole(bits: int) -> Callable[[int, str], str]:
    def act(number: int, template: str) -> str:
        if not template:
            return ""
        asked = read(template)[1]
        if asked.has("RN"):
            return _roman(template, number)
        if asked.has("EEEE"):
            if bits == 64:
                return _scientific(Decimal(number), asked)
            return f"{number:+.{asked.behind}e}".replace("+", " ", number >= 0)
        if asked.has("V"):
            number *= 10**asked.shift
            if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
                raise OutOfRange("integer out of range")
            asked = replace(asked, before=asked.before + asked.shift)
        digits = f"{number}.{'0' * asked.behind}" if asked.behind else str(number)
        return _laid_out(template, asked, digits)

    return act


def _of_float(digits_max: int) -> Callable[[float, str], str]:
    def act(number: float, template: str) -> str:
        if not template:
            return ""
        asked = read(template)[1]
        if asked.has("RN"):
            fits = math.isfinite(number) and abs(number) < 10_000
            return _roman(template, round(number) if fits else None)
        if asked.has("EEEE"):
            if not math.isfinite(number):
                return _no_exponent(asked)
            text = f"{number:+.{asked.behind}e}"
            return " " + text[1:] if text[0] == "+" else text
        if asked.has("V"):
            number *= 10.0**asked.shift
            asked = replace(asked, before=asked.before + asked.shift)
        whole = len(_fixed(abs(number), 0))
        behind = min(asked.behind, max(digits_max - whole, 0))
        asked = replace(asked, behind=behind)
        return _laid_out(template, asked, _fixed(number, behind))

    return act


def _fixed(number: float, behind: int) -> str:
    """As C's printf writes a number with a point."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.{behind}f}"


def _to_char(kind: type[t.SqlType], meaning: Callable[[Any, str], str]) -> Function:
    return Function("to_char", (kind, t.Text), t.Text(), meaning, fallible=True)


TABLE = (
    _to_char(t.Numeric, _of_numeric),
    _to_char(t.Integer, _of_whole(32)),
    _to_char(t.BigInt, _of_whole(64)),
    _to_char(t.Double, _of_float(_DIGITS[t.Double])),
    _to_char(t.Real, _of_float(_DIGITS[t.Real])),
)
