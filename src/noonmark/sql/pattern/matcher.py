"""Matchers: a pattern that can be looked for in texts.

    RE2          what it can say exactly: everything but the below; time is linear in the text
    automaton    words' edges and look-around, which RE2 has not: linear, look-around quadratic
    Python's re  back references: there is no better way; time may grow exponentially

A `Subject` is one text under one matcher; its places are the matcher's own (RE2's are bytes), so
that looking for all matches in a text takes time that is linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Protocol

import re2

from noonmark.errors import InvalidArgument, InvalidPattern
from noonmark.sql.pattern import syntax as sx
from noonmark.sql.pattern.characters import Characters
from noonmark.sql.pattern.dissect import Span, automaton, captures, is_plain

#: What RE2 may use for one pattern; a pattern that needs more to be compiled is refused.
_MEMORY_MAX = 32 << 20

#: To have a pattern compiled.
_COMPILED_STEPS = 30

#: The place of the match, then those of its captures.
Spans = tuple[Span | None, ...]


class Subject(Protocol):
    """One text, in which is looked for one pattern."""

    length: int

    def find(self, at: int) -> Spans | None:
        """The first match that starts at `at` or behind it."""

    def cut(self, start: int, end: int) -> str:
        """The text between two places."""

    def after(self, at: int) -> int:
        """The place one character further."""


class Matcher(Protocol):
    """A pattern that can be looked for: see the module."""

    captures: int

    def steps(self, length: int) -> float:
        """About how many microseconds a text of this length takes; infinite without a bound."""

    def test(self, text: str) -> bool:
        """Whether the pattern matches anywhere."""

    def on(self, text: str) -> Subject:
        """The text, to be looked in."""


def matcher(pattern: sx.Pattern) -> Matcher:
    """The quickest matcher that is exact."""
    tree = pattern.tree
    if sx.has(tree, sx.Back):
        return _Backtracking(pattern)
    if sx.has(tree, sx.Look) or any(map(_is_of_words, _places(tree))):
        return _Automatic(pattern)
    return _Linear(pattern)


def _size(tree: sx.Tree) -> int:
    """How many parts a pattern has, those that are repeated a number of times each time."""
    times = max(tree.least, tree.most or 1) if isinstance(tree, sx.Repeat) else 1
    return 1 + times * sum(map(_size, sx.parts_of(tree)))


def _places(tree: sx.Tree) -> Iterator[sx.At]:
    if isinstance(tree, sx.At):
        yield tree
    for part in sx.parts_of(tree):
        yield from _places(part)


def _is_of_words(at: sx.At) -> bool:
    return at.place in (sx.WORD_START, sx.WORD_END, sx.WORD_EDGE, sx.NO_WORD_EDGE)


# -- RE2 ------------------------------------------------------------------------------------------

_RE2_PLACES = {
    sx.TEXT_START: r"\A", sx.TEXT_END: r"\z", sx.LINE_START: "(?m:^)", sx.LINE_END: "(?m:$)",
}  # fmt: skip


def _in_re2(tree: sx.Tree) -> str:
    match tree:
        case Characters():
            return tree.re2
        case sx.Sequence():
            return "".join(map(_in_re2, tree.parts)) or "(?:)"
        case sx.Either():
            return f"(?:{'|'.join(map(_in_re2, tree.branches))})"
        case sx.Capture():
            return f"({_in_re2(tree.operand)})"
        case sx.At():
            return _RE2_PLACES[tree.place]
        case sx.Repeat():
            return f"(?:{_in_re2(tree.operand)}){_counts(tree)}"
    raise AssertionError("RE2 has no word for it")


def _counts(tree: sx.Repeat) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    most = "" if tree.most is None else str(tree.most)
    return known.get((tree.least, tree.most)) or (
        f"{{{tree.least}}}" if tree.least == tree.most else f"{{{tree.least},{most}}}"
    )


class _Linear:
    def __init__(self, pattern: sx.Pattern) -> None:
        self._pattern = pattern
        self.captures = pattern.captures
        options = re2.Options()
        options.longest_match = True
        options.log_errors = False
        options.max_mem = _MEMORY_MAX
        try:
            self.compiled = re2.compile(_in_re2(pattern.tree).encode(), options)
        except re2.error:
            raise InvalidArgument("regular expression is too complex") from None
        self._size = _size(pattern.tree)
        self._shortest = sx.prefers(pattern.tree) is False
        #: Whether captures must be found by their rule: RE2's own is another.
        self._dissects = pattern.captures > 0 and not is_plain(pattern.tree)

    def steps(self, length: int) -> float:
        by_rule = self._shortest or self._dissects
        return _COMPILED_STEPS + length * self._size / (1 if by_rule else 1_000)

    def test(self, text: str) -> bool:
        return self.compiled.search(text.encode()) is not None

    def on(self, text: str) -> Subject:
        by_rule = self._shortest or self._dissects
        return _CharactersOf(self, text) if by_rule else _BytesOf(self, text)

    def spans(self, text: str, match: Span) -> Spans:
        """What is found there, once RE2 has said where."""
        start, end = match
        if self._shortest:
            end = next(automaton(self._pattern.tree).ends(text, start))
        if not self._dissects:
            return ((start, end),)
        return ((start, end), *captures(self._pattern, text, (start, end)))


class _BytesOf:
    """A text as bytes, in which RE2 says all."""

    def __init__(self, matcher: _Linear, text: str) -> None:
        self._search = matcher.compiled.search
        self._groups = matcher.captures + 1
        self._data = text.encode()
        self.length = len(self._data)

    def find(self, at: int) -> Spans | None:
        found = self._search(self._data, at)
        if found is None:
            return None
        groups = range(self._groups)
        return tuple([None if found.start(n) < 0 else found.span(n) for n in groups])

    def cut(self, start: int, end: int) -> str:
        return self._data[start:end].decode()

    def after(self, at: int) -> int:
        at += 1
        while at < self.length and self._data[at] & 0xC0 == 0x80:
            at += 1
        return at


class _Plain:
    """A text whose places are characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.length = len(text)

    def cut(self, start: int, end: int) -> str:
        return self.text[start:end]

    def after(self, at: int) -> int:
        return at + 1


class _CharactersOf(_Plain):
    """A text in which RE2 finds bytes and the rest is about characters."""

    def __init__(self, matcher: _Linear, text: str) -> None:
        super().__init__(text)
        self._matcher = matcher
        self._data = text.encode()
        # A place as characters and as bytes: places are asked for from the left to the right.
        self._known = (0, 0)

    def find(self, at: int) -> Spans | None:
        characters, size = self._known
        size += len(self.text[characters:at].encode())
        found = self._matcher.compiled.search(self._data, size)
        if found is None:
            return None
        start = at + len(self._data[size : found.start()].decode())
        end = start + len(self._data[found.start() : found.end()].decode())
        self._known = (start, found.start())
        return self._matcher.spans(self.text, (start, end))


# -- the automaton --------------------------------------------------------------------------------


class _Automatic:
    def __init__(self, pattern: sx.Pattern) -> None:
        self.pattern = pattern
        self.captures = pattern.captures
        self.automaton = automaton(pattern.tree)
        self.longest = sx.prefers(pattern.tree) is not False

    def steps(self, length: int) -> float:
        looked = length if sx.has(self.pattern.tree, sx.Look) else 1
        return _COMPILED_STEPS + length * looked * _size(self.pattern.tree)

    def test(self, text: str) -> bool:
        return self.automaton.leftmost(text, 0, longest=False) is not None

    def on(self, text: str) -> Subject:
        return _Automated(self, text)


class _Automated(_Plain):
    def __init__(self, matcher: _Automatic, text: str) -> None:
        super().__init__(text)
        self._matcher = matcher

    def find(self, at: int) -> Spans | None:
        found = self._matcher.automaton.leftmost(self.text, at, self._matcher.longest)
        if found is None:
            return None
        return (found, *captures(self._matcher.pattern, self.text, found))


# -- back references ------------------------------------------------------------------------------


def _in_python(tree: sx.Tree) -> str:
    match tree:
        case Characters():
            return tree.python
        case sx.Sequence():
            return "".join(map(_in_python, tree.parts)) or "(?:)"
        case sx.Either():
            return f"(?:{'|'.join(map(_in_python, tree.branches))})"
        case sx.Capture():
            return f"({_in_python(tree.operand)})"
        case sx.At():
            return _PYTHON_PLACES[tree.place]
        case sx.Look():
            way = ("?=", "?!") if tree.ahead else ("?<=", "?<!")
            return f"({way[tree.negated]}{_in_python(tree.operand)})"
        case sx.Back():
            return f"(?:\\{tree.number})"
        case sx.Repeat():
            return f"(?:{_in_python(tree.operand)}){_counts(tree)}{'' if tree.greedy else '?'}"


_PYTHON_PLACES = {
    sx.TEXT_START: r"\A", sx.TEXT_END: r"\Z", sx.LINE_START: "(?m:^)", sx.LINE_END: "(?m:$)",
    sx.WORD_START: r"\b(?=\w)", sx.WORD_END: r"\b(?<=\w)", sx.WORD_EDGE: r"\b",
    sx.NO_WORD_EDGE: r"\B",
}  # fmt: skip


class _Backtracking:
    """One difference to PostgreSQL is left here: of several ways to match, the first is taken."""

    def __init__(self, pattern: sx.Pattern) -> None:
        self.captures = pattern.captures
        try:
            self.compiled = re.compile(_in_python(pattern.tree))
        except re.error as error:
            raise InvalidPattern(f"invalid regular expression: {error}") from None

    def steps(self, length: int) -> float:  # noqa: ARG002 - the text does not bound it
        return math.inf

    def test(self, text: str) -> bool:
        return self.compiled.search(text) is not None

    def on(self, text: str) -> Subject:
        return _Backtracked(self, text)


class _Backtracked(_Plain):
    def __init__(self, matcher: _Backtracking, text: str) -> None:
        super().__init__(text)
        self._compiled = matcher.compiled

    def find(self, at: int) -> Spans | None:
        found = self._compiled.search(self.text, at)
        if found is None:
            return None
        groups = range(self._compiled.groups + 1)
        return tuple(None if found.start(n) < 0 else found.span(n) for n in groups)
