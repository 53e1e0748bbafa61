"""A pattern as an automaton: where a tree can begin and end, in time that is linear in the text.

An automaton is a list of steps; it is in a set of steps at once, so a place of the text is looked
at once by each of them, however many ways to match there are.

Law: ``ends(text, start)`` are the places where a match of the tree that starts at `start` can end.
``starts(text, end)`` are those where one that ends there can start. ``leftmost`` is the match with
the least start, and of those the longest or the shortest.

A tree with a back reference has no automaton.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from noonmark.errors import InvalidArgument
from noonmark.sql.pattern import syntax as sx
from noonmark.sql.pattern.characters import Characters, is_word

STEPS_MAX = 20_000

#: A character to read, a place to be at, or nothing; and the steps behind it.
Step = tuple[Characters | sx.At | sx.Look | None, tuple[int, ...]]


class Automaton:
    """See the module."""

    def __init__(self, tree: sx.Tree) -> None:
        self._tree = tree
        self._forward = _Program(tree, backward=False)

    @cached_property
    def _backward(self) -> _Program:
        return _Program(self._tree, backward=True)

    def ends(self, text: str, start: int) -> Iterator[int]:
        """In increasing order."""
        return self._forward.run(text, start)

    def starts(self, text: str, end: int) -> Iterator[int]:
        """In decreasing order."""
        return self._backward.run(text, end)

    def leftmost(self, text: str, at: int, longest: bool) -> tuple[int, int] | None:
        """The match that starts first, at `at` or behind it."""
        start = self._forward.leftmost(text, at)
        if start is None:
            return None
        end = start
        for end in self.ends(text, start):  # noqa: B007 - the last one, or the first
            if not longest:
                break
        return start, end


class _Program:
    """The steps of a tree in one direction. Step 0 is the end: the tree has matched."""

    def __init__(self, tree: sx.Tree, backward: bool) -> None:
        self._backward = backward
        self._steps: list[Step] = [(None, ())]
        self._start = self._compile(tree, 0)
        self._looks: dict[sx.Look, Automaton] = {}

    # -- steps -----------------------------------------------------------------------------------

    def _add(self, act: Characters | sx.At | sx.Look | None, *behind: int) -> int:
        if len(self._steps) >= STEPS_MAX:
            raise InvalidArgument("regular expression is too complex")
        self._steps.append((act, behind))
        return len(self._steps) - 1

    def _compile(self, tree: sx.Tree, behind: int) -> int:
        """The step with which a tree begins, when `behind` is what follows it."""
        match tree:
            case Characters() | sx.At() | sx.Look():
                return self._add(tree, behind)
            case sx.Sequence():
                for part in tree.parts if self._backward else reversed(tree.parts):
                    behind = self._compile(part, behind)
                return behind
            case sx.Either():
                return self._add(None, *[self._compile(each, behind) for each in tree.branches])
            case sx.Capture():
                return self._compile(tree.operand, behind)
            case sx.Repeat():
                return self._repeat(tree, behind)
        raise AssertionError("a back reference has no automaton")

    def _repeat(self, tree: sx.Repeat, behind: int) -> int:
        if tree.most is None:
            again = self._add(None, behind)
            first = self._compile(tree.operand, again)
            self._steps[again] = (None, (first, behind))
            behind = again if tree.least == 0 else first
            times = max(tree.least - 1, 0)
        else:
            end = behind
            for _ in range(tree.most - tree.least):
                behind = self._add(None, self._compile(tree.operand, behind), end)
            times = tree.least
        for _ in range(times):
            behind = self._compile(tree.operand, behind)
        return behind

    # -- running ---------------------------------------------------------------------------------

    def run(self, text: str, at: int) -> Iterator[int]:
        """The places where it has matched, from `at` on in its direction."""
        now = self._closure([self._start], text, at)
        while now:
            if 0 in now:
                yield at
            character = text[at - 1 : at] if self._backward else text[at : at + 1]
            if not character:
                return
            at += -1 if self._backward else 1
            now = self._closure(self._read(now, character), text, at)

    def leftmost(self, text: str, at: int) -> int | None:
        """The first place, from `at` on, where a match starts."""
        starts: dict[int, int] = {}
        best: int | None = None
        while True:
            if best is None:
                starts.setdefault(self._start, at)
            now: dict[int, int] = {}
            # Steps that began earlier go first: a step keeps the least of its starts.
            for step, start in sorted(starts.items(), key=lambda each: each[1]):
                for reached in self._closure([step], text, at):
                    now.setdefault(reached, start)
            if 0 in now and (best is None or now[0] < best):
                best = now[0]
            if best is not None:
                now = {step: start for step, start in now.items() if start < best}
            if at == len(text) or (best is not None and not now):
                return best
            starts = {}
            for step, start in now.items():
                for behind in self._read((step,), text[at]):
                    starts[behind] = min(start, starts.get(behind, start))
            at += 1

    def _read(self, now: Iterable[int], character: str) -> list[int]:
        found: list[int] = []
        for step in now:
            act, behind = self._steps[step]
            if isinstance(act, Characters) and character in act:
                found += behind
        return found

    def _closure(self, steps: Iterable[int], text: str, at: int) -> dict[int, None]:
        """The steps that are reached from these without reading; those that read, and the end."""
        seen: set[int] = set()
        found: dict[int, None] = {}
        stack = list(steps)
        while stack:
            step = stack.pop()
            if step in seen:
                continue
            seen.add(step)
            act, behind = self._steps[step]
            if step == 0 or isinstance(act, Characters):
                found[step] = None
            elif act is None or self._holds(act, text, at):
                stack += behind
        return found

    def _holds(self, act: sx.At | sx.Look, text: str, at: int) -> bool:
        if isinstance(act, sx.At):
            return is_at(act.place, text, at)
        inner = self._looks.get(act)
        if inner is None:
            inner = self._looks[act] = Automaton(act.operand)
        found = inner.ends(text, at) if act.ahead else inner.starts(text, at)
        return (next(found, None) is not None) is not act.negated


def is_at(place: str, text: str, at: int) -> bool:
    """Whether the place `at` of a text is of that kind."""
    match place:
        case sx.TEXT_START:
            return at == 0
        case sx.TEXT_END:
            return at == len(text)
        case sx.LINE_START:
            return at == 0 or text[at - 1] == "\n"
        case sx.LINE_END:
            return at == len(text) or text[at] == "\n"
    before = at > 0 and is_word(text[at - 1])
    after = at < len(text) and is_word(text[at])
    match place:
        case sx.WORD_START:
            return after and not before
        case sx.WORD_END:
            return before and not after
        case sx.WORD_EDGE:
            return before is not after
    return before is after
