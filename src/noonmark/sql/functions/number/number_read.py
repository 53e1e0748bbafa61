"""to_number: a number read from a text by a template of to_char.

The nodes of the template are gone through from left to right, and each takes what it can of the
text: a place takes a digit, or the point, or a sign that stands before or behind the digits; what
a node cannot use it leaves to the next one. Where the text ends the template ends. The result has
as many digits before the point as the template has places there: more is an error.

The text is looked at byte by byte, as PostgreSQL does, and signs are those of the C locale.
"""

from __future__ import annotations

from decimal import Decimal

from noonmark.errors import InvalidText, OutOfRange
from noonmark.rows import types as t
from noonmark.sql.functions.errors import NotHeldHere
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.number.fit import WIDE
from noonmark.sql.functions.number.number_pattern import Asked, read
from noonmark.sql.functions.number.transcendental import power

_DATA = frozenset(b"0123456789.,+-")
_PLACES = frozenset(("0", "9", ".", "D"))
_SIGNS = {"MI": b"-", "PL": b"+", "SG": b"-+"}
#: How many characters stand for what is no number: a currency symbol, an ending as "th".
_OTHERS = {"L": 1, "TH": 2}


class _Reader:
    """One text under the nodes of a template."""

    def __init__(self, text: bytes, asked: Asked) -> None:
        self.text, self.asked, self.at = text, asked, 0
        self.sign = b""
        self.digits = bytearray()
        self.before = self.behind = 0
        self.has_point = False

    def ended(self) -> bool:
        return self.at >= len(self.text)

    @property
    def _byte(self) -> bytes:
        return self.text[self.at : self.at + 1]

    def skip_character(self) -> None:
        """Go on by a character, which may be of several bytes."""
        self.at += 1
        while not self.ended() and self.text[self.at] & 0xC0 == 0x80:
            self.at += 1

    def skip_others(self, count: int) -> None:
        """Go on by characters that are no part of a number."""
        while count and not self.ended() and self.text[self.at] not in _DATA:
            self.skip_character()
            count -= 1

    def place(self, pattern: str) -> None:
        """A place of a digit, or of the point."""
        if self._byte == b" ":
            self.at += 1
        if self.ended():
            return
        if not self.sign and pattern in ("0", "9") and not (self.before or self.behind):
            self._sign_before()
        if self.ended():
            return
        was_read = False
        if self._byte.isdigit():
            if self.has_point and self.behind == self.asked.behind:
                return
            self.digits += self._byte
            self.behind += self.has_point
            self.before += not self.has_point
            was_read = True
        elif self.asked.has(".") and not self.has_point and self._byte == b".":
            self.digits += b"."
            self.has_point = was_read = True
        if not self.sign and self.before + self.behind:
            self._sign_behind(was_read)

    def _sign_before(self) -> None:
        brackets = self.asked.has("PR") and self._byte == b"<"
        if self._byte == b"-" or brackets:
            self.sign = b"-"
            self.at += 1
        elif self._byte == b"+":
            self.sign = b"+"
            self.at += 1

    def _sign_behind(self, was_read: bool) -> None:
        """A sign that stands behind the last digit, wherever the template has it."""
        following = self.text[self.at + 1 : self.at + 2]
        if self.asked.has("S"):
            if was_read and following in (b"-", b"+"):
                self.at += 1
                self.sign = following
        elif not was_read and self.asked.flags & {"PL", "MI"} and self._byte in (b"-", b"+"):
            self.sign = self._byte

    def node(self, pattern: str) -> bool:
        """Give the text to a pattern; whether the byte at hand is used up."""
        fills = self.asked.has("FM") and not (self.before or self.behind)
        if pattern in _PLACES:
            self.place(pattern)
            return True
        if pattern in (",", "G"):
            return not fills and self._byte == b","
        if pattern in _SIGNS:
            if self._byte in (b"-", b"+") and self._byte in _SIGNS[pattern]:
                self.sign = self._byte
                return True
            self.skip_others(1)
            return False
        if pattern == "TH" and (self.sign == b"-" or self.asked.has(".")):
            return False
        self.skip_others(_OTHERS.get(pattern, 0))
        return False


def _to_number(text: str, template: str) -> Decimal | None:
    if not template:
        return None
    nodes, asked = read(template)
    for pattern in ("EEEE", "RN"):
        if asked.has(pattern):
            raise NotHeldHere(f'"{pattern}" not supported for input')
    reader = _Reader(text.encode(), asked)
    for pattern, literal in nodes:
        if reader.ended():
            break
        if literal:
            reader.skip_character()
        elif reader.node(pattern.upper()):
            reader.at += 1
    return _fitted(reader, asked)


def _fitted(reader: _Reader, asked: Asked) -> Decimal:
    shown = reader.digits.removesuffix(b".").decode()
    if not shown.strip("."):
        sign = reader.sign.decode() or " "
        raise InvalidText(f'invalid input syntax for type numeric: "{sign}{shown}"')
    number = Decimal(shown)
    before = asked.before + asked.shift
    if number and number.adjusted() >= before:
        limit = f"10^{before}" if before else "1"
        raise OutOfRange(
            "numeric field overflow",
            detail=f"A field with precision {before + reader.behind}, scale {reader.behind} must "
            f"round to an absolute value less than {limit}.",
        )
    number = number.copy_negate() if reader.sign == b"-" and number else number
    if asked.has("V"):
        number = WIDE.multiply(number, power(Decimal(10), Decimal(-asked.shift)))
    return number


TABLE = (
    Function(
        "to_number", (t.Text, t.Text), t.Numeric(), _to_number, fallible=True, gives_null=True
    ),
)
