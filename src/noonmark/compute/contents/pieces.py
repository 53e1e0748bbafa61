"""A relation over an input of many rows, computed piece by piece: the same rows in bounded memory.

The operators above the scan of that input, as far as each is linear in it, are its *chain*; what
stands on the chain is the *reduction*, if it is one of those that can be computed of parts:

    N(chain(P1 + ... + Pn)) = shown(merged(partial(chain(P1)), ..., partial(chain(Pn))))

Law: ``Pieces.rows`` are those of `evaluation.contents`, however the input is cut, in whatever
number of threads. Errors are those of the first piece that has some.

Where it runs: statement workers; pure but for threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from noonmark.compute.contents.evaluation import ContentsEvaluation, Inputs, with_scan
from noonmark.compute.kernel.updates import Errors, Rows, concat
from noonmark.compute.plan.operators import operator_of
from noonmark.compute.scalar.number import NO_KERNEL, NoKernel
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.scalar import columns_of

T = TypeVar("T")
P = TypeVar("P")
#: So many rows or groups of the parts are merged at once; then when there are twice as many.
_MERGED_ROWS_MIN = 500_000
#: Plans of more nodes are computed in one thread: others have small stacks.
_NODES_MAX = 400
_STACK_BYTES = 16 << 20
#: What the reduction's place is taken by.
_REDUCED = "\0reduced"


@dataclass(frozen=True)
class Split:
    """A relation, cut at an input: `reduction` stands on `chain`, which begins with the scan.

    Without a reduction the chain is the whole relation.
    """

    name: str
    chain: tuple[r.Relation, ...]
    reduction: r.Relation | None


def split_of(relation: r.Relation, name: str) -> Split | None:
    """How a relation is computed of pieces of an input; None if it is not."""
    scans = (node for node in walk(relation) if isinstance(node, r.Scan))
    if sum(scan.collection == name for scan in scans) != 1:
        return None
    path = _path(relation, name)
    end = 1
    while end < len(path) and any(path[end - 1] is each for each in _linear_in(path[end])):
        end += 1
    if any(isinstance(node, r.Get) for node in walk(path[end - 1])):
        return None  # what it stands for is known only above
    chain, above = tuple(path[:end]), path[end:]
    if not above:
        return Split(name, chain, None)
    reduction = operator_of(above[0]).reduction(above[0])
    return None if reduction is None else Split(name, chain, above[0])


def _linear_in(node: r.Relation) -> tuple[r.Relation, ...]:
    return operator_of(node).linear_in(node)


def columns_used(relation: r.Relation, name: str) -> frozenset[int]:
    """The columns of an input that a relation looks at."""
    used: set[int] = set()
    for node in walk(relation):
        if not isinstance(node, r.Relation):
            continue
        for below in r.relations_below(node):
            if not isinstance(below, r.Scan) or below.collection != name:
                continue
            if not isinstance(node, r.Project):
                return frozenset(range(len(below.schema)))
            used.update(*map(columns_of, node.scalars))
    return frozenset(used) if not isinstance(relation, r.Scan) else _all(relation)


def _all(scan: r.Scan) -> frozenset[int]:
    return frozenset(range(len(scan.schema)))


def _path(node: r.Relation, name: str) -> list[r.Relation]:
    """The relations from a scan up to a node; none if the scan is not below it."""
    if isinstance(node, r.Scan):
        return [node] if node.collection == name else []
    for below in r.relations_below(node):
        if found := _path(below, name):
            return [*found, node]
    return []


# -- the evaluation -----------------------------------------------------------------------------


class Pieces:
    """One evaluation of a relation in pieces."""

    def __init__(self, relation: r.Relation, split: Split, inputs: Inputs, threads: int) -> None:
        self._relation = relation
        self._split = split
        self._inputs = inputs
        nodes = sum(1 for _ in walk(relation))
        self._threads = threads if nodes <= _NODES_MAX else 1

    def rows(self, pieces: Sequence[P], read: Callable[[P, Errors], Rows], errors: Errors) -> Rows:
        """The rows of the relation; `read` gives those of a piece of the input.

        Raises:
            NoKernel: the kernels have no answer; another engine does.
        """
        try:
            return self._rows(pieces, read, errors)
        except NO_KERNEL as error:
            raise NoKernel from error

    def streamed(
        self, pieces: Sequence[P], read: Callable[[P, Errors], Rows], errors: Errors
    ) -> Iterator[Rows]:
        """The same piece by piece, of a relation that has no reduction; stops at an error."""
        assert self._split.reduction is None
        chain = self._chain(errors)
        if errors.found:
            return

        def one(piece: P) -> tuple[Rows, Errors]:
            own = Errors()
            return chain(read(piece, own), own), own

        try:
            with _mapped(one, pieces, self._threads) as parts:
                for rows, own in parts:
                    errors.found += own.found
                    if errors.found:
                        return
                    yield rows
        except NO_KERNEL as error:
            raise NoKernel from error

    def _rows(self, pieces: Sequence[P], read: Callable[[P, Errors], Rows], errors: Errors) -> Rows:
        node = self._split.reduction
        if node is None:
            return concat(list(self.streamed(pieces, read, errors)), self._relation.schema)
        chain, reduction = self._chain(errors), operator_of(node).reduction(node)
        assert reduction is not None, "the relation was split there"
        parts: list[Any] = []
        held = kept = 0

        def one(piece: P) -> tuple[Any, Errors]:
            own = Errors()
            return reduction.partial(chain(read(piece, own), own), own), own

        with _mapped(one, pieces, self._threads) as found:
            for part, own in found:
                errors.found += own.found
                if errors.found:
                    return concat((), self._relation.schema)
                parts.append(part)
                held += reduction.size(part)
                if held > 2 * kept + _MERGED_ROWS_MIN:
                    parts = [reduction.merged(parts)]
                    held = kept = reduction.size(parts[0])
        whole = reduction.shown(reduction.merged(parts), errors)
        if node is self._relation:
            return whole
        rest = with_scan(self._relation, node, r.Scan(_REDUCED, node.schema))
        return ContentsEvaluation({**self._inputs, _REDUCED: whole}, errors).rows(rest)

    def _wanted(self) -> list[set[int] | None]:
        """Of each relation of the chain the columns that those above it look at; None for all."""
        node, wanted = self._split.reduction, None
        found: list[set[int] | None] = []
        for below in reversed(self._split.chain):
            if node is not None:
                used = operator_of(node).used(node, wanted)
                wanted = next(each for relation, each in used if relation is below)
            found.append(wanted)
            node = below
        return found[::-1]

    def _chain(self, errors: Errors) -> Callable[[Rows, Errors], Rows]:
        """What the chain makes of the rows of a piece; its other inputs are computed here, once."""
        chain, asked = self._split.chain, ContentsEvaluation(self._inputs, errors)
        steps = [
            operator_of(node).of_pieces(node, below, asked, wanted)
            for below, node, wanted in zip(chain[:-1], chain[1:], self._wanted()[1:], strict=True)
        ]

        def made(rows: Rows, own: Errors) -> Rows:
            for step in steps:
                rows = step(rows, own)
            return rows

        return made


@contextmanager
def _mapped(act: Callable[[P], T], given: Sequence[P], threads: int) -> Iterator[Iterator[T]]:
    """The results in order; at most one more than there are threads is made ahead."""
    if threads == 1 or len(given) < 2:
        yield map(act, given)
        return
    before = threading.stack_size(_STACK_BYTES)
    pool = ThreadPoolExecutor(threads, "noonmark-piece")
    try:
        yield _ahead(pool, act, given, threads + 1)
    finally:
        pool.shutdown(cancel_futures=True)
        threading.stack_size(before)


def _ahead(
    pool: ThreadPoolExecutor, act: Callable[[P], T], given: Sequence[P], count: int
) -> Iterator[T]:
    waiting: deque[Future[T]] = deque()
    for piece in given:
        waiting.append(pool.submit(act, piece))
        if len(waiting) == count:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
