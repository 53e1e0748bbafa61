"""What an operator is: one object for each class of relations, which knows everything about it.

    on the plan     which changes it needs, how it is maintained, what it keeps, by which keys it
                    can be asked: what EXPLAIN, STRICT, arrangements and joins ask
    delta           its changes, from those of its inputs and from what was there
    before a tick   its rows as they were, as a whole or by key
    contents        its rows, of the rows of its inputs at one time

Law: for every relation r of the class, and whatever its inputs are,

    contents(r)        is what r means (`noonmark.sql.meaning.relation`)
    delta(r)           is differentiate(r(integrate(inputs))) over the tick
    ask(r, key, k)     is contents(r) before the tick, where the key is k
    whole(r)           is contents(r) before the tick

One suite, tests/conformance/test_operators.py, runs every operator of the table in every engine.

The defaults are those of an operator that nothing is known of: it is maintained by nothing, asked
by no key and computed by no kernel. What Spark's own operators make of one is in a second table,
because only Spark's rooms import Spark (`noonmark.compute.spark.contents`).

Where it runs: questions on the plan everywhere, the rest on executors and in statement workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from noonmark.compute.contents.evaluation import ContentsEvaluation, by_kernel, with_scan
from noonmark.compute.contents.reduction import Reduction
from noonmark.compute.incremental import by_key
from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.first import first_of
from noonmark.compute.incremental.matching import matching
from noonmark.compute.kernel.updates import Changes, Errors, Ints, Rows, distinct_keys
from noonmark.compute.plan.first import Order, orders_of, reads_first, shown
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.multiway import Keys, MultiwayJoin
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.errors import Unsupported
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar, columns_of

if TYPE_CHECKING:
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation
    from noonmark.compute.trace.by_key import CollectionAt

N = TypeVar("N", bound=r.Relation)
Key = tuple[Scalar, ...]
#: Columns of a relation that somebody asks for; None for all of them.
Wanted = set[int] | None
#: What is made of rows; errors go to where they are gathered.
Step = Callable[[Rows, Errors], Rows]


class Operator(Generic[N]):
    """See the module."""

    #: Whether some rows may leave it without a value, whatever its scalars are.
    may_fail = False

    # -- on the plan ----------------------------------------------------------------------------

    def title(self, node: N) -> str:
        """What EXPLAIN calls it."""
        return type(node).__name__

    def name(self, node: N) -> str:
        """What it is of: a collection, or what stands on several."""
        return type(node).__name__

    def way(self, node: N) -> Way:
        """How it is maintained."""
        del node
        return Way.UNKNOWN

    def inputs(self, node: N) -> tuple[r.Relation, ...]:
        """The relations whose changes it needs."""
        return tuple(r.relations_below(node))

    def multiway(self, node: N) -> MultiwayJoin | None:
        """The join of many inputs that it is, if it is one."""
        del node
        return None

    def flat(self, node: N) -> MultiwayJoin | None:
        """The join of many inputs that it adds to a join above it, if it is no input itself."""
        del node
        return None

    def sides(self, node: N) -> Sequence[tuple[r.Relation, Key]]:
        """Its inputs, each with the key over its rows; none if it does not work by keys."""
        del node
        return ()

    def over_scans(self, node: N) -> r.Relation:
        """The same over collections that are named by their numbers."""
        raise AssertionError(f"{type(node).__name__} is not asked alone")

    def orders(self, node: N) -> tuple[Order, ...]:
        """The orders whose first rows alone decide what it is."""
        del node
        return ()

    def can_push_down(self, node: N, key: Scalar) -> bool:
        """Whether its rows with given values of a scalar can be asked for (key pushdown)."""
        del node, key
        return False

    def is_whole(self, node: N) -> bool:
        """Whether all of it is there to be read, without an arrangement of its own."""
        del node
        return False

    def row_by_row(self, node: N) -> r.Relation | None:
        """The input of whose rows, each alone, its own are made; None if there is no such."""
        del node
        return None

    def each_row(self, node: N, rows: Rows) -> tuple[Rows, Ints]:
        """What it makes of rows of that input, and of which; those that fail are left out."""
        del rows
        raise AssertionError(f"{type(node).__name__} is not made row by row")

    def is_found_by(self, node: N, key: Key) -> bool:
        """Whether it is stored so that the rows with a key can be put in an order once."""
        del node, key
        return False

    def is_monotone(self, node: N) -> bool:
        """Whether its rows only come, while those of its inputs only come."""
        del node
        return False

    def of_growing(self, node: N) -> r.Relation:
        """The same, where all of its inputs only grow: marked, if that is of use to it."""
        return node

    def keeps_itself(self, node: N) -> bool:
        """Whether it is maintained by its own rows, which are kept (`plan.growing`)."""
        del node
        return False

    def group_key(self, node: N) -> Key:
        """What its rows are grouped by, over themselves; of one that keeps itself."""
        raise AssertionError(f"{type(node).__name__} does not keep itself")

    def is_one_row(self, node: N, *, exactly: bool) -> bool:
        """Whether it is at most one row; or exactly one."""
        del node, exactly
        return False

    def is_narrow(self, node: N) -> bool:
        """Whether it has fewer rows than what it is of: it is asked before what is not filtered."""
        del node
        return True

    def is_unique(self, node: N, key: Sequence[Scalar], keys: Keys) -> bool:
        """Whether, if the keys of collections are keys, at most one row has the key's values."""
        del node, key, keys
        return False

    def used(self, node: N, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """Which columns of its inputs it looks at, when these of its own are wanted."""
        del wanted
        return [(below, None) for below in r.relations_below(node)]

    # -- its changes ----------------------------------------------------------------------------

    def delta(self, node: N, tick: Evaluation) -> Changes:
        """Its changes in a tick."""
        del tick
        raise Unsupported(f"a view with {type(node).__name__} is not supported yet")

    # -- before the tick ------------------------------------------------------------------------

    def whole(self, node: N, old: Old) -> Rows:
        """All of its rows as they were; for those that are there as a whole."""
        del old
        raise AssertionError(f"{type(node).__name__} is not kept as a whole")

    def ask(
        self, node: N, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Its rows with these keys, as they were; only the columns `wanted` need to be there."""
        del old, key, probes, wanted
        raise AssertionError(f"{type(node).__name__} is not asked by key")

    def place(self, node: N, old: Old) -> CollectionAt | None:
        """Where it is stored, row for row; None if it is not."""
        del node, old
        return None

    def counts(self, node: N, old: Old, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        """Of each probe, how many stored rows `ask` would look at; None if that is not known."""
        del node, old, key, probes
        return None

    # -- of its own rows ------------------------------------------------------------------------

    def found(self, node: N, old: Old, key: Key, probes: Sequence[pa.Array]) -> Found:
        """Its rows with these keys, as they were; for one that is kept as a whole."""
        everything = set(range(len(node.schema)))
        places, rows = old.traces.find(old.wholes[node], key, probes, everything)
        numbered = Rows((pa.array(places), *rows.columns), rows.time, rows.diff).consolidated()
        places = numbered.columns[0].to_numpy()  # type: ignore[union-attr]
        return places, numbered.with_columns(numbered.columns[1:])

    def with_more(self, node: N, rows: Rows, more: Rows) -> Rows | None:
        """Its rows when more has come into its input, of those before; None if unknown."""
        del node, rows, more
        return None

    # -- at one time ----------------------------------------------------------------------------

    def has_kernel(self, node: N) -> bool:
        """Whether rows of whole keys are computed at once (`kernel`), without errors."""
        del node
        return False

    def kernel(self, node: N, *sides: Rows) -> Rows:
        """What it is of rows that hold whole keys."""
        del sides
        raise AssertionError(f"{type(node).__name__} has no kernel")

    def can(self, node: N) -> bool:
        """Whether `contents` has kernels for it."""
        del node
        return False

    def contents(self, node: N, asked: ContentsEvaluation) -> Rows:
        """What it is of what its inputs hold; errors go to where they are gathered."""
        del asked
        raise AssertionError(f"{type(node).__name__} has no kernel")

    # -- at one time, in pieces -----------------------------------------------------------------

    def linear_in(self, node: N) -> tuple[r.Relation, ...]:
        """Its inputs of which pieces give pieces of it (`noonmark.compute.contents.pieces`)."""
        del node
        return ()

    def of_pieces(
        self, node: N, below: r.Relation, asked: ContentsEvaluation, wanted: Wanted
    ) -> Step:
        """What it makes of a piece of an input in which it is linear.

        Args:
            node: the relation.
            below: the input.
            asked: computes the other inputs, once.
            wanted: the columns that are needed of its rows; others may be missing.
        """
        del asked, wanted
        alone = with_scan(node, below, r.Scan("", below.schema))

        def step(rows: Rows, errors: Errors) -> Rows:
            return operator_of(alone).contents(alone, ContentsEvaluation({"": rows}, errors))

        return step

    def reduction(self, node: N) -> Reduction[Any] | None:
        """How it is computed of parts of its input; None if it is not."""
        del node
        return None


class Keyed(Operator[N]):
    """An operator of which some keys can be asked alone (`noonmark.compute.plan.keys`).

    Law: d(op)(R) = the sum over the keys k that occur in dR of
    differentiate(op(integrate(R where key = k))).
    """

    def way(self, node: N) -> Way:
        """Its first rows, if these decide; else all rows of the keys that changed."""
        if reads_first(node):
            return Way.FIRST_ROWS
        return Way.BY_KEY if keyed_inputs(node)[0].key else Way.WHOLE

    def delta(self, node: N, tick: Evaluation) -> Changes:
        """The operator before and after, for the keys that changed."""
        return tick.keyed(node, [tick.delta(part.relation) for part in keyed_inputs(node)])

    def ask(
        self, node: N, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Ask the inputs for the same key, and the operator for what it makes of them."""
        del wanted
        near = self._first(node, old, key, probes) if orders_of(node) else None
        sides = self.asked_sides(node, old, key, probes) if near is None else [near]
        made = by_kernel(node, sides)
        return matching(by_key.contents(node, sides) if made is None else made, key, probes)

    def asked_sides(self, node: N, old: Old, key: Key, probes: Sequence[pa.Array]) -> list[Rows]:
        """The rows of its inputs that decide what it is for a key."""
        return [old.contents(each, key, probes) for each in r.relations_below(node)]

    def own_key(self, node: N, key: Key) -> Key:
        """A key by which it is asked, over the rows of its input."""
        del node
        return key

    def _first(self, node: N, old: Old, key: Key, probes: Sequence[pa.Array]) -> Rows | None:
        """Of the input the first rows alone, if that is enough: of whole keys."""
        own, given = keyed_inputs(node)[0].key, self.own_key(node, key)
        if set(given) != set(own):
            return None
        wanted = distinct_keys([probes[given.index(part)] for part in own])
        counts = np.full(len(wanted[0]), shown(node), np.int64)
        return first_of(old, node, own, wanted, counts)


def columns_in(*nodes: Any) -> set[int]:
    """The columns that scalars look at."""
    return {at for node in nodes for at in columns_of(node)}


def inside(key: Scalar, relation: r.Relation) -> bool:
    """Whether a scalar looks only at the first columns, those of a relation."""
    return all(at < len(relation.schema) for at in columns_in(key))


def merged(parts: Iterable[Changes]) -> Iterator[Any]:
    """The errors of several changes."""
    return (error for part in parts for error in part.errors)
