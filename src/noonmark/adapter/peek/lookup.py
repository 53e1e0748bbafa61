"""A SELECT by key that is made ready once: its rows cost an index, and no plan.

Most queries of a server that serves views are one statement with other values: a few columns of
the rows of one collection whose columns equal parameters. What such a statement needs is known
when it was answered once: which columns the key has, which the client gets, and how.

Law (same): `Lookup.rows(values)` is what `Reads.fast_path` gives for the same peek, values and
moment, or None.
Law (strict): the time is asked for each time. Only what was found out of one state of the location
at one time is known again, and only while both are the same.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Row
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.chunks import CHUNK_ROWS
from noonmark.adapter.peek.rows import finisher
from noonmark.adapter.peek.shape import Leaf
from noonmark.persist.log.state import State
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.sql.evaluate import PARAMETERS, evaluate
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Parameter

if TYPE_CHECKING:
    from noonmark.adapter.peek.reads import Reads

#: Makes the values of a key from those of the parameters.
KeyOf = Callable[[Sequence[Any]], Row]
#: Whole numbers, each with all values of those before it: the cast changes no value.
_WHOLE: tuple[type[t.SqlType], ...] = (t.SmallInt, t.Integer, t.BigInt)


class Lookup:
    """See the module."""

    __slots__ = (
        "_finish", "_is_ordered", "_key_of", "_leaf", "_names", "_pick", "_picks", "_places",
        "_reads", "_schema", "_state", "_time",
    )  # fmt: skip

    def __init__(self, reads: Reads, peek: Peek, picks: Sequence[int]) -> None:
        (leaf,) = peek.shape.leaves
        self._reads, self._leaf, self._names = reads, leaf, peek.collections
        self._picks = tuple(picks)
        self._key_of = _key_of(leaf)
        self._finish = finisher(
            [column.type for column in peek.relation.schema.columns][: len(picks)]
        )
        self._is_ordered = bool(peek.order)
        self._state: State | None = None
        self._time = -1
        self._schema: Schema | None = None
        self._places: tuple[int, ...] = ()
        self._pick: Callable[[Row], Row] = tuple

    @classmethod
    def of(cls, reads: Reads, peek: Peek) -> Lookup | None:
        """That of a peek; None where it is no look-up of one key."""
        shape = peek.shape
        if len(shape.leaves) != 1 or shape.picks is None or peek.system or peek.is_volatile:
            return None
        leaf = shape.leaves[0]
        if not leaf.decided or len(leaf.keys) != 1 or not peek.only_keys_ask:
            return None
        if not peek.asks <= {Parameter}:
            return None
        return cls(reads, peek, shape.picks[: peek.width])

    def rows(self, values: Sequence[Any]) -> list[Row] | None:
        """The rows now; None where that needs waiting, or is more than little work."""
        reads = self._reads
        time = reads.strict_time()
        if time is None:
            return None
        state = reads.state
        if state is not self._state or time != self._time:
            if not reads.is_readable(self._names, time):
                return None
            self._state, self._time = state, time
        mirror = reads.mirrors.now(state.collection(self._names[0]), time)
        if mirror is None:
            return None
        if mirror.schema is not self._schema:
            self._follow(mirror.schema)
        key = self._key_of(values)
        if None in key:
            return []
        found = mirror.find(self._places, key)
        if len(found) == 1 and found[0][1] == 1:
            return self._finish((self._pick(found[0][0]),))
        total = sum(count for _, count in found)
        if total > CHUNK_ROWS or (total > 1 and self._is_ordered):
            return None
        pick = self._pick
        return self._finish(pick(row) for row, count in found for _ in range(count))

    def _follow(self, schema: Schema) -> None:
        """The places of the columns in rows of this schema."""
        names = self._leaf.scan.columns.names
        self._places = tuple([schema.index(names[at]) for at in self._leaf.columns])
        self._pick = _picker([schema.index(names[at]) for at in self._picks], len(schema))
        self._schema = schema


def _key_of(leaf: Leaf) -> KeyOf:
    (scalars,) = leaf.keys
    places = [_parameter(scalar) for scalar in scalars]
    if all(place is not None for place in places):
        at = [place for place in places if place is not None]
        return _picker(at)
    return lambda values: tuple(
        [evaluate(scalar, (), {PARAMETERS: tuple(values)}) for scalar in scalars]
    )


def _parameter(scalar: s.Scalar) -> int | None:
    """The place among the values of the one that it is, as it is."""
    if isinstance(scalar, s.Cast) and isinstance(scalar.operand, Parameter):
        source, target = type(scalar.operand.type), type(scalar.type)
        if source not in _WHOLE or target not in _WHOLE:
            return None
        widens = _WHOLE.index(source) <= _WHOLE.index(target)
        return scalar.operand.index - 1 if widens else None
    return scalar.index - 1 if isinstance(scalar, Parameter) else None


def _picker(places: Sequence[int], width: int | None = None) -> Callable[[Sequence[Any]], Row]:
    """Takes these places of a sequence, as a tuple; of a row of that width, all in order."""
    if width is not None and list(places) == list(range(width)):
        return tuple  # of a tuple: itself
    if len(places) == 1:
        (place,) = places
        return lambda row: (row[place],)
    if not places:
        return lambda _: ()
    return itemgetter(*places)
