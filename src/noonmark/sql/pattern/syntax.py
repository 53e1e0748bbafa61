"""The syntax trees of PostgreSQL's advanced regular expressions, and their greediness.

A pattern is a tree of characters (`Characters`), sequences, alternatives, repetitions, captures,
constraints (which match the empty string at some places) and back references.

Law (greediness, PostgreSQL's): a repetition prefers long or short matches as it is written; one
with a fixed count prefers what its operand prefers. A sequence prefers what its first part with a
preference does. Alternatives prefer long matches. `prefers` is None where there is no preference.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.sql.pattern.characters import Characters

#: Constraints without a pattern of their own.
TEXT_START, TEXT_END = "text start", "text end"
LINE_START, LINE_END = "line start", "line end"
WORD_START, WORD_END, WORD_EDGE, NO_WORD_EDGE = "word start", "word end", "edge", "no edge"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; of no parts, the empty string."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Any of the branches."""

    branches: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The operand at least `least` and at most `most` times; `most` None is without end."""

    operand: Tree
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Capture:
    """A part whose match is asked for; numbers are from 1."""

    number: int
    operand: Tree


@dataclass(frozen=True, slots=True)
class At:
    """A place: one of the constants of this module."""

    place: str


@dataclass(frozen=True, slots=True)
class Look:
    """A place before which, or behind which, the operand matches, or does not."""

    operand: Tree
    ahead: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Back:
    """What the capture of that number matched, once more."""

    number: int


Tree = Characters | Sequence | Either | Repeat | Capture | At | Look | Back

EMPTY = Sequence(())


@dataclass(frozen=True, slots=True)
class Pattern:
    """A whole pattern: its tree and how many captures it has."""

    tree: Tree
    captures: int


def parts_of(tree: Tree) -> tuple[Tree, ...]:
    """The trees directly below."""
    match tree:
        case Sequence():
            return tree.parts
        case Either():
            return tree.branches
        case Repeat() | Capture() | Look():
            return (tree.operand,)
    return ()


def prefers(tree: Tree) -> bool | None:
    """Whether a tree prefers its longest match (True), its shortest (False), or neither."""
    match tree:
        case Either():
            return True
        case Capture():
            return prefers(tree.operand)
        case Repeat():
            fixed = tree.least == tree.most
            return prefers(tree.operand) if fixed else tree.greedy
        case Sequence():
            found = (prefers(part) for part in tree.parts)
            return next((each for each in found if each is not None), None)
    return None


def has(tree: Tree, *kinds: type) -> bool:
    """Whether a tree of these kinds is somewhere in it."""
    return isinstance(tree, kinds) or any(has(part, *kinds) for part in parts_of(tree))
