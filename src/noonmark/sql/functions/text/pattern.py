"""LIKE, SIMILAR TO and regular expressions: what matches, where, and what is made of it.

Law (exact): a pattern matches exactly the strings that PostgreSQL's matches; of a match the extent
and the captures are PostgreSQL's too (`pattern.syntax`, `pattern.dissect`).

Law (linear): the time is bounded by the length of the text times that of the pattern. The
exceptions are look-around, whose time is bounded by the square, and back references, for which
there is no bound: `is_linear` tells them apart, and a maintained view refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import re2

from noonmark.errors import InvalidArgument, InvalidEscape
from noonmark.sql.functions.errors import EscapeMisused
from noonmark.sql.pattern.matcher import Matcher, Spans, Subject, matcher
from noonmark.sql.pattern.parser import parse

#: How many patterns are kept compiled; each may take megabytes.
_KEPT = 200


@lru_cache(maxsize=_KEPT)
def regex(pattern: str, flags: str = "") -> Matcher:
    """The regular expression, to be looked for."""
    return matcher(parse(pattern, flags.replace("g", "")))


def is_linear(pattern: str, flags: str = "") -> bool:
    """Whether looking for it takes time that is bounded by the text's length; see the module."""
    return math.isfinite(regex(pattern, flags).steps(0))


def like_steps(pattern: str, length: int) -> float:
    """About how many microseconds LIKE takes with a text of this length."""
    return 1 + len(pattern) * length / 1_000


# -- LIKE and SIMILAR TO --------------------------------------------------------------------------


@lru_cache(maxsize=_KEPT)
def like(pattern: str, escape: str = "\\", ignore_case: bool = False) -> Like:
    """The LIKE pattern."""
    return Like(pattern, escape, ignore_case)


class Like:
    """A LIKE pattern; matches whole strings.

    A pattern that ends with its escape character matches nothing. It is an error for the texts
    that come as far as that character with something left of them, as in PostgreSQL.
    """

    def __init__(self, pattern: str, escape: str, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        if ignore_case:
            pattern = pattern.lower()
        parts: list[str] = []
        at, self._broken = 0, False
        while at < len(pattern):
            character = pattern[at]
            if escape and character == escape:
                at += 1
                if at == len(pattern):
                    self._broken = True
                    parts = _up_to_the_end(parts)
                    break
                parts.append(re2.escape(pattern[at]))
            else:
                parts.append({"%": ".*", "_": "."}.get(character) or re2.escape(character))
            at += 1
        options = re2.Options()
        options.dot_nl, options.log_errors, options.never_capture = True, False, True
        options.max_mem = 32 << 20
        try:
            self._compiled = re2.compile("".join(parts).encode(), options)
        except re2.error:
            raise InvalidArgument("LIKE pattern is too long") from None

    def matches(self, text: str) -> bool:
        """Whether all of the text is as the pattern says."""
        text = text.lower() if self._ignore_case else text
        found = self._compiled.fullmatch(text.encode()) is not None
        if self._broken and found:
            raise InvalidEscape("LIKE pattern must not end with escape character")
        return found


def _up_to_the_end(parts: list[str]) -> list[str]:
    """What a text has that comes to the end of these parts with a character left.

    Wildcards after the last ``%`` take their characters before anything else is looked at.
    """
    wild = len(parts)
    while wild and parts[wild - 1] in (".", ".*"):
        wild -= 1
    run = parts[wild:]
    if ".*" not in run:
        return [*parts, ".", ".*"]
    after = run[run.index(".*") + 1 :].count(".")
    return [*parts[:wild], *run[: run.index(".*")], *["."] * max(1, after), ".*"]


@lru_cache(maxsize=_KEPT)
def similar(pattern: str, escape: str = "\\") -> Matcher:
    """The SIMILAR TO pattern; matches whole strings."""
    return regex(similar_text(pattern, escape))


@lru_cache(maxsize=_KEPT)
def similar_text(pattern: str, escape: str = "\\") -> str:
    """The regular expression of a SIMILAR TO pattern, which is for all of a text.

    Two escaped double quotes mark the part that SUBSTRING gives: what is before it takes as
    little of the text as it can, and it as much.
    """
    if len(escape) > 1:
        raise InvalidEscape(
            "invalid escape string", hint="Escape string must be empty or one character."
        )
    return _Similar(pattern, escape).text()


class _Similar:
    """A pattern on its way to a regular expression."""

    def __init__(self, pattern: str, escape: str) -> None:
        self.pattern = pattern
        self.escape = escape
        self.depth = 0  # of square brackets
        self.inside = 0  # how far inside of them: a ] ends them from 3 on
        self.marks = 0

    def text(self) -> str:
        parts, escaped = [], False
        for character in self.pattern:
            if escaped:
                parts.append(self._escaped(character))
                escaped = False
            elif character == self.escape:
                escaped = True  # one that ends the pattern escapes nothing
            elif self.depth:
                parts.append(self._bracketed(character))
            else:
                if character == "[":
                    self.depth, self.inside = 1, 1
                parts.append(_SIMILAR.get(character, character))
        return f"^(?:{''.join(parts)})$"

    def _escaped(self, character: str) -> str:
        if character != '"' or self.depth:
            self.inside = 3
            return f"\\{character}"
        self.marks += 1
        if self.marks > len(_MARKS):
            raise EscapeMisused(
                "SQL regular expression may not contain more than two "
                "escape-double-quote separators"
            )
        return _MARKS[self.marks - 1]

    def _bracketed(self, character: str) -> str:
        if character == "]" and self.inside > 2:
            self.depth -= 1
        elif character == "^":
            self.inside += 1
        else:
            self.depth += character == "["
            self.inside = 3
        return "\\\\" if character == "\\" else character


_MARKS = ("){1,1}?(", "){1,1}(?:")
_SIMILAR = {"%": ".*", "_": ".", "(": "(?:", ".": "\\.", "^": "\\^", "$": "\\$", "\\": "\\\\"}


# -- all matches ----------------------------------------------------------------------------------


def first(text: str, found: Matcher) -> tuple[Subject, Spans] | None:
    """The first match."""
    subject = found.on(text)
    spans = subject.find(0)
    return None if spans is None else (subject, spans)


def every(subject: Subject, start: int = 0) -> Iterator[Spans]:
    """All matches from the left, none inside of another; an empty one moves on a character.

    The first is looked for behind `start` characters.
    """
    at = 0
    while start and at <= subject.length:
        at, start = subject.after(at), start - 1
    while at <= subject.length:
        spans = subject.find(at)
        if spans is None:
            return
        yield spans
        assert spans[0] is not None, "the match itself is somewhere"
        start, end = spans[0]
        at = subject.after(end) if start == end else end


def split(text: str, found: Matcher) -> Iterator[str]:
    """The text between the matches; empty ones at its ends and behind a match do not count."""
    subject, start = found.on(text), 0
    for spans in every(subject):
        assert spans[0] is not None
        low, high = spans[0]
        if low == high and (low in (0, subject.length) or low == start):
            continue
        yield subject.cut(start, low)
        start = high
    yield subject.cut(start, subject.length)


def replace(text: str, found: Matcher, new: str, number: int, skipped: int = 0) -> str:
    r"""The text with the match of a number, or all (0), replaced; ``\1`` and ``\&`` are captures.

    They are looked for, and counted, behind so many characters.
    """
    subject, start, parts = found.on(text), 0, []
    pieces = _pieces(new)
    for at, spans in enumerate(every(subject, skipped), 1):
        assert spans[0] is not None
        if number and at != number:
            continue
        parts.append(subject.cut(start, spans[0][0]))
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(piece)
            elif piece < len(spans) and (span := spans[piece]) is not None:
                parts.append(subject.cut(*span))
        start = spans[0][1]
        if number:
            break
    parts.append(subject.cut(start, subject.length))
    return "".join(parts)


def _pieces(new: str) -> list[str | int]:
    """A replacement as texts and numbers of captures; 0 is the whole match."""
    pieces: list[str | int] = []
    at = 0
    while at < len(new):
        end = new.find("\\", at)
        if end < 0 or end + 1 == len(new):
            pieces.append(new[at:])
            break
        pieces.append(new[at:end])
        letter = new[end + 1]
        if letter == "&":
            pieces.append(0)
        elif letter in "123456789":
            pieces.append(int(letter))
        else:
            pieces.append("\\" if letter == "\\" else "\\" + letter)
        at = end + 2
    return pieces
