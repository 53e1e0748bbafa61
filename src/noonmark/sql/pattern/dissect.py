"""Which part of a match each capture has: PostgreSQL's rule, without backtracking.

Law: once the match of a tree is known, its captures are found from the left. Of a sequence the
first part takes the most, or the least, as it prefers, that lets the rest match; of alternatives
the first that matches is taken; of a repetition the last round counts. Where an alternative or a
round is not taken, its captures have no value.

Every choice is decided by automata that look over the text once, so no choice is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile

from noonmark.sql.pattern import syntax as sx
from noonmark.sql.pattern.automaton import Automaton
from noonmark.sql.pattern.characters import Characters

Span = tuple[int, int]

automaton = lru_cache(maxsize=4_096)(Automaton)


def captures(pattern: sx.Pattern, text: str, match: Span) -> tuple[Span | None, ...]:
    """The spans of the captures of a match."""
    found: dict[int, Span] = {}
    _take(pattern.tree, text, match, found)
    return tuple(found.get(number) for number in range(1, pattern.captures + 1))


def is_plain(tree: sx.Tree) -> bool:
    """Whether taking the most from the left, character by character, gives the same captures.

    So it is when every capture, and every stretch between captures, has at most one part whose
    length varies, and that is a greedy repetition of one character: it then is the longest.
    """
    parts = tree.parts if isinstance(tree, sx.Sequence) else (tree,)
    stretch: list[sx.Tree] = []
    for part in parts:
        if isinstance(part, sx.Capture):
            inside = part.operand
            own = inside.parts if isinstance(inside, sx.Sequence) else (inside,)
            if not _is_stretch(stretch) or not _is_stretch(own):
                return False
            stretch = []
        else:
            stretch.append(part)
    return _is_stretch(stretch)


def _is_stretch(parts: Iterable[sx.Tree]) -> bool:
    varying = 0
    for part in parts:
        if isinstance(part, sx.Repeat):
            if not part.greedy or not isinstance(part.operand, Characters):
                return False
            varying += part.least != part.most
        elif not isinstance(part, Characters | sx.At):
            return False
    return varying <= 1


def _take(tree: sx.Tree, text: str, span: Span, found: dict[int, Span]) -> None:
    if not sx.has(tree, sx.Capture):
        return
    match tree:
        case sx.Capture():
            found[tree.number] = span
            _take(tree.operand, text, span, found)
        case sx.Either():
            for branch in tree.branches:
                if span[1] in _fits(branch, sx.EMPTY, text, span):
                    _take(branch, text, span, found)
                    return
        case sx.Sequence():
            _take_sequence(tree, text, span, found)
        case sx.Repeat():
            _take_last(tree, text, span, found)


def _take_sequence(tree: sx.Sequence, text: str, span: Span, found: dict[int, Span]) -> None:
    parts, (start, end) = tree.parts, span
    while parts:
        # What captures nothing is one part, up to the next that does.
        plain = 0
        while plain < len(parts) and not sx.has(parts[plain], sx.Capture):
            plain += 1
        size = plain or 1
        first = parts[0] if size == 1 else sx.Sequence(parts[:size])
        parts = parts[size:]
        if not parts:
            _take(first, text, (start, end), found)
            return
        fits = _fits(first, sx.Sequence(parts), text, (start, end))
        middle = fits[0] if sx.prefers(first) is False else fits[-1]
        _take(first, text, (start, middle), found)
        start = middle


def _fits(first: sx.Tree, rest: sx.Tree, text: str, span: Span) -> list[int]:
    """The places at which the first can end and the rest begin, in increasing order."""
    return _ending(first, _begins(rest, text, span), text, span)


def _begins(tree: sx.Tree, text: str, span: Span) -> set[int]:
    """The places of a span from which a tree can match all that is left of it."""
    return set(takewhile(lambda at: at >= span[0], automaton(tree).starts(text, span[1])))


def _ending(tree: sx.Tree, places: set[int], text: str, span: Span) -> list[int]:
    """Those of the places at which a match from the start of the span can end."""
    ends = takewhile(lambda at: at <= span[1], automaton(tree).ends(text, span[0]))
    return [at for at in ends if at in places]


def _take_last(tree: sx.Repeat, text: str, span: Span, found: dict[int, Span]) -> None:
    """The last of the rounds.

    Where a round must be, the last is behind all others together: they take what the repetition
    prefers. Else each round takes what the operand prefers; a round is empty only if the match is.
    """
    start, end = span
    if tree.least > 0:
        most = None if tree.most is None else tree.most - 1
        others = sx.Repeat(tree.operand, tree.least - 1, most, tree.greedy)
        fits = _fits(others, tree.operand, text, span)
        start = fits[0] if sx.prefers(others) is False else fits[-1]
        _take(tree.operand, text, (start, end), found)
        return
    shortest, most = sx.prefers(tree.operand) is False, tree.most
    if start == end and (shortest or end not in _fits(tree.operand, sx.EMPTY, text, span)):
        return
    last = span
    places = _begins(sx.Repeat(tree.operand, 0, None, True), text, span)
    while start < end:
        if most is not None:
            most -= 1
            places = _begins(sx.Repeat(tree.operand, 0, most, True), text, (start, end))
        fits = [at for at in _ending(tree.operand, places, text, (start, end)) if at > start]
        middle = fits[0] if shortest else fits[-1]
        last, start = (start, middle), middle
    _take(tree.operand, text, last, found)
