r"""Sets of characters: of one position of a pattern.

A set is ranges of code points and named classes, or all characters but those. It can be said in
RE2's syntax, in Python's, and asked about one character; all three agree.

Classes are those of PostgreSQL's C.UTF-8: letters are Unicode's, digits are 0 to 9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

#: Unicode's spaces.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
#: A range of more characters than this is not looked at one by one for its other case.
_FOLDED_MAX = 0x3000

_ASCII_PUNCT = "!-/:-@\\[-`{-~"
#: Each class in RE2's syntax, inside of brackets.
_RE2 = {
    "alpha": r"\p{L}\p{Nl}",
    "digit": "0-9",
    "alnum": r"0-9\p{L}\p{Nl}",
    "word": r"0-9_\p{L}\p{Nl}",
    "space": r"\t-\r \x{85}\p{Z}",
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "punct": _ASCII_PUNCT + r"\p{P}\p{S}",
    "xdigit": "0-9A-Fa-f",
    "blank": r" \t\p{Zs}",
    "cntrl": r"\p{Cc}",
    "graph": r"!-~\p{L}\p{M}\p{N}\p{P}\p{S}",
    "print": r" -~\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}",
    "ascii": r"\x00-\x7f",
}
CLASSES = frozenset(_RE2)


def _is_of(*categories: str, also: str = "") -> Callable[[str], bool]:
    return lambda c: c in also or unicodedata.category(c).startswith(categories)


_DIGITS = "0123456789"
_TESTS: dict[str, Callable[[str], bool]] = {
    "alpha": _is_of("L", "Nl"),
    "digit": lambda c: c in _DIGITS,
    "alnum": _is_of("L", "Nl", also=_DIGITS),
    "word": _is_of("L", "Nl", also=_DIGITS + "_"),
    "space": lambda c: c in _SPACES,
    "upper": _is_of("Lu"),
    "lower": _is_of("Ll"),
    "punct": _is_of("P", "S"),
    "xdigit": lambda c: c in _DIGITS + "abcdefABCDEF",
    "blank": _is_of("Zs", also="\t"),
    "cntrl": _is_of("Cc"),
    "graph": _is_of("L", "M", "N", "P", "S"),
    "print": _is_of("L", "M", "N", "P", "S", "Zs"),
    "ascii": str.isascii,
}

is_word = lru_cache(maxsize=4096)(_TESTS["word"])


@dataclass(frozen=True)
class Characters:
    """See the module."""

    ranges: tuple[tuple[int, int], ...] = ()
    classes: tuple[str, ...] = ()
    negated: bool = False

    @classmethod
    def of(cls, text: str) -> Characters:
        """The set of some characters."""
        return cls(tuple((ord(c), ord(c)) for c in text))

    def folded(self) -> Characters:
        """The set without regard to case: with each character, its other cases."""
        ranges = list(self.ranges)
        for low, high in self.ranges:
            for code in range(low, min(high, low + _FOLDED_MAX) + 1):
                ranges += ((ord(c), ord(c)) for c in _cases(chr(code)))
        both = {"upper": "alpha", "lower": "alpha"}
        classes = dict.fromkeys(both.get(name, name) for name in self.classes)
        return Characters(tuple(dict.fromkeys(ranges)), tuple(classes), self.negated)

    @cached_property
    def re2(self) -> str:
        """The set in RE2's syntax."""
        body = "".join(_range(low, high) for low, high in self.ranges)
        body += "".join(_RE2[name] for name in self.classes)
        if not body:
            return "(?s:.)" if self.negated else r"[^\x00-\x{10FFFF}]"
        return f"[{'^' if self.negated else ''}{body}]"

    @cached_property
    def python(self) -> str:
        """The set in the syntax of Python's re."""
        body = "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in self.ranges)
        parts = [f"[{body}]"] if body else []
        parts += [_PYTHON[name] for name in self.classes]
        either = f"(?:{'|'.join(parts)})" if parts else "(?!)"
        return f"(?:(?!{either})[\\s\\S])" if self.negated else either

    @cached_property
    def _test(self) -> Callable[[str], bool]:
        tests = [_TESTS[name] for name in self.classes]
        ranges, negated = self.ranges, self.negated

        def test(character: str) -> bool:
            code = ord(character)
            found = any(low <= code <= high for low, high in ranges)
            return (found or any(each(character) for each in tests)) is not negated

        return lru_cache(maxsize=1024)(test)

    def __contains__(self, character: str) -> bool:
        return self._test(character)


#: Each class in Python's syntax, by itself.
_PYTHON = {
    "alpha": r"[^\W\d_]",
    "digit": "[0-9]",
    "alnum": r"(?:[^\W\d_]|[0-9])",
    "word": r"(?:[^\W\d]|[0-9])",
    "space": r"\s",
    "upper": "(?:(?=[^\\W\\d_])[^a-zß-öø-ÿ])",
    "lower": "[a-zß-öø-ÿ]",
    "punct": "[" + _ASCII_PUNCT + "]",
    "xdigit": "[0-9A-Fa-f]",
    "blank": "[ \\t]",
    "cntrl": "[\\x00-\\x1f\\x7f-\\x9f]",
    "graph": r"[^\s\x00-\x1f\x7f-\x9f]",
    "print": r"[^\t-\r\x00-\x1f\x7f-\x9f]",
    "ascii": r"[\x00-\x7f]",
}


@lru_cache(maxsize=65_536)
def _cases(character: str) -> tuple[str, ...]:
    """The one-character other cases."""
    return tuple(
        c for c in (character.lower(), character.upper()) if len(c) == 1 and c != character
    )


def _range(low: int, high: int) -> str:
    first = f"\\x{{{low:x}}}"
    return first if low == high else f"{first}-\\x{{{high:x}}}"


def complement(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges of all other characters."""
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    return (*found, (start, 0x10FFFF))


ANY = Characters(negated=True)
NEWLINE = Characters.of("\n")
NOT_NEWLINE = Characters(NEWLINE.ranges, negated=True)
#: The characters that are no digits, and no spaces: what brackets can have of \\D and \\S.
NO_DIGIT = complement([(ord("0"), ord("9"))])
NO_SPACE = complement((ord(c), ord(c)) for c in _SPACES)
