"""Bracket expressions: ``[a-z]``, ``[^[:space:]x]``, ``[]-]``."""

from __future__ import annotations

from collections.abc import Callable

from noonmark.sql.pattern.characters import CLASSES, NO_DIGIT, NO_SPACE, Characters

_SHORT = {"d": "digit", "s": "space", "w": "word"}
_CONTROLS = {
    "a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "0": "\0",
}  # fmt: skip
_HEX_LENGTHS = {"x": 255, "u": 4, "U": 8}

Refused = Callable[[str], Exception]


def bracket(text: str, at: int, refused: Refused) -> tuple[Characters, int]:
    """The set that begins behind the bracket before `at`, and where its text ends."""
    negated = text[at : at + 1] == "^"
    at += negated
    reader = _Reader(text, at, refused)
    reader.read()
    return Characters(tuple(reader.ranges), tuple(reader.classes), negated), reader.at


class _Reader:
    def __init__(self, text: str, at: int, refused: Refused) -> None:
        self._text = text
        self.at = at
        self._refused = refused
        self.ranges: list[tuple[int, int]] = []
        self.classes: list[str] = []

    def read(self) -> None:
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._item()
            if low is None:
                continue
            high = low
            if self._peek() == "-" and self._peek(2)[1:] not in ("]", ""):
                self.at += 1
                end = self._item()
                if end is None:
                    raise self._refused("invalid character range")
                high = end
                if high < low:
                    raise self._refused("invalid character range")
            self.ranges.append((low, high))
        self.at += 1

    def _peek(self, length: int = 1) -> str:
        found = self._text[self.at : self.at + length]
        if not found:
            raise self._refused("brackets [] not balanced")
        return found

    def _item(self) -> int | None:
        """The next character; None if it was a class, which is taken in."""
        character = self._peek()
        if character == "[" and self._peek(2)[1:] in (":", ".", "="):
            return self._named(self._peek(2)[1])
        if character == "\\":
            return self._escape()
        self.at += 1
        return ord(character)

    def _named(self, kind: str) -> int | None:
        end = self._text.find(kind + "]", self.at + 2)
        if end < 0:
            raise self._refused("brackets [] not balanced")
        name = self._text[self.at + 2 : end]
        self.at = end + 2
        if kind == ":":
            if name not in CLASSES:
                raise self._refused("invalid character class")
            self.classes.append(name)
            return None
        if len(name) != 1:
            raise self._refused("invalid collating element")
        return ord(name)

    def _escape(self) -> int | None:
        letter = self._peek(2)[1:]
        if not letter:
            raise self._refused("invalid escape \\ sequence")
        self.at += 2
        if letter in _SHORT:
            self.classes.append(_SHORT[letter])
            return None
        if letter in "DS":
            self.ranges += NO_DIGIT if letter == "D" else NO_SPACE
            return None
        if not (letter.isascii() and letter.isalnum()):
            return ord(letter)
        if letter in _HEX_LENGTHS:
            start, most = self.at, _HEX_LENGTHS[letter]
            while self._peek() in "0123456789abcdefABCDEF" and self.at - start < most:
                self.at += 1
            digits = self._text[start : self.at]
            if not digits or int(digits, 16) > 0x10FFFF:
                raise self._refused("invalid escape \\ sequence")
            return int(digits, 16)
        if letter not in _CONTROLS:
            raise self._refused("invalid escape \\ sequence")
        return ord(_CONTROLS[letter])
