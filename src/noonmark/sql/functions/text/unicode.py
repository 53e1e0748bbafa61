"""Unicode: normal forms, folded case, and characters by their numbers."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, partial
from typing import Literal

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.sql.functions.errors import InvalidUnicode
from noonmark.sql.functions.function import Function

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
_HEX = "[0-9a-fA-F]"


@cache
def _escapes(mark: str, longer: bool) -> re.Pattern[str]:
    """Marked characters, marks that mark nothing, and what stands between them."""
    forms = [f"({re.escape(mark)})", rf"\+({_HEX}{{6}})"]
    forms += [f"u?({_HEX}{{4}})", f"U({_HEX}{{8}})"] if longer else [f"({_HEX}{{4}})"]
    sign = re.escape(mark)
    return re.compile(f"{sign}(?:{'|'.join(forms)}|)|[^{sign}]+", re.DOTALL)


def _form(name: str) -> Form:
    for form in _FORMS:
        if form == name.upper():
            return form
    raise InvalidArgument(f"invalid normalization form: {name}")


def _normalize(text: str, form: str = "NFC") -> str:
    return unicodedata.normalize(_form(form), text)


def _is_normalized(text: str, form: str = "NFC") -> bool:
    return unicodedata.is_normalized(_form(form), text)


def _casefold(text: str) -> str:
    """One letter for one letter."""
    return text.casefold() if text.isascii() else "".join(map(_folded, text))


def _folded(letter: str) -> str:
    for form in (letter.casefold(), letter.lower()):
        if len(form) == 1:
            return form
    return letter


def unescaped(text: str, mark: str = "\\", *, longer: bool = False) -> str:
    """The text with the characters whose numbers stand behind marks.

    Raises:
        InvalidUnicode: a mark before what is no number, or half of a pair.
    """
    units: list[int] = []
    for match in _escapes(mark, longer).finditer(text):
        code = next(filter(None, match.groups()[1:]), None)
        if code is None:
            if match[0] == mark:
                raise InvalidUnicode("invalid Unicode escape")
            units += map(ord, match[1] or match[0])
            continue
        if not 0 < int(code, 16) <= 0x10FFFF:
            error = InvalidArgument if longer else InvalidUnicode
            raise error(f"invalid Unicode code point: {int(code, 16):04X}")
        units.append(int(code, 16))
    try:
        return "".join(map(chr, units)).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidUnicode("invalid Unicode surrogate pair") from None


_X = t.Text

TABLE = (
    *(Function("normalize", (_X,) * n, _X(), _normalize, fallible=True) for n in (1, 2)),
    *(
        Function("is_normalized", (_X,) * n, t.Boolean(), _is_normalized, fallible=True)
        for n in (1, 2)
    ),
    Function("casefold", (_X,), _X(), _casefold),
    Function("unistr", (_X,), _X(), partial(unescaped, longer=True), fallible=True),
)
