"""Temporal filters of small changes: every row has its turn.

Law: an update (r, s, d) of the input is, for the turn x of r (`noonmark.sql.ir.temporal`),

    from     (r, max(s, x), d)
    until    (r, s, d) and (r, x, -d), if s < x; else nothing

and the changes of the filter are those of all updates of its input, whenever they were. So what is
at a time within the tick is a change now; what is later waits, with its time, in an arrangement.
Once the input is known up to t,

    waiting = how often each row r is there at t, with its turn x, for all r with x > t

and what is due in a tick is found there by its turn.

Where it runs: executors; pure.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.updates import Changes, Errors, Ints, Rows, concat
from noonmark.compute.trace.pending import turns_schema
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.temporal import FOREVER, ROUNDED_UP, Temporal, temporal


def follow(node: r.Filter, source: Changes, due: Rows, upper: int) -> tuple[Changes, Rows]:
    """The changes of a temporal filter before `upper`, and those of what waits.

    Args:
        node: the filter.
        source: the changes of its input.
        due: what waited: rows of the arrangement, each at its turn.
        upper: the end of the tick.
    """
    what = _temporal(node)
    errors = Errors(list(source.errors))
    rows, turns = _with_turns(what, source.rows, errors)
    acted = Rows(due.columns[:-1], due.time, due.diff)
    made = [acted if what.begins else acted.negated()]
    if what.begins:
        made.append(_before(Rows(rows.columns, np.maximum(rows.time, turns), rows.diff), upper))
    else:
        there = np.flatnonzero(rows.time < turns)
        rows, turns = rows.take(there), turns[there]
        made += [rows, _before(Rows(rows.columns, turns, -rows.diff), upper)]
    kept = concat([_waiting(rows, turns, upper), due.negated()], turns_schema(node))
    changes = concat(made, node.schema).consolidated()
    return Changes(changes, tuple(errors.found)), kept.consolidated()


def waiting_of(node: r.Filter, rows: Rows, upper: int) -> Rows:
    """What waits of rows that are there, at the end of their tick."""
    rows, turns = _with_turns(_temporal(node), rows, Errors())
    return _waiting(rows, turns, upper).consolidated()


def _temporal(node: r.Filter) -> Temporal:
    found = temporal(node)
    assert found is not None, "a filter that does not follow the time"
    return found


def _before(rows: Rows, upper: int) -> Rows:
    return rows.take(np.flatnonzero(rows.time < upper))


def _waiting(rows: Rows, turns: Ints, upper: int) -> Rows:
    """The rows whose turn is still to come, with it."""
    later = np.flatnonzero((turns >= upper) & (turns < FOREVER))
    taken = rows.take(later)
    return Rows((*taken.columns, pa.array(turns[later])), taken.time, taken.diff)


def _with_turns(what: Temporal, rows: Rows, errors: Errors) -> tuple[Rows, Ints]:
    """The rows that have a turn, and their turns."""
    (values,), rows = projected([what.scalar], rows, errors)
    if values.null_count:
        some = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        rows, values = rows.take(some), values.take(pa.array(some))
    if not isinstance(what.scalar.type, t.BigInt):
        given = from_array(values, what.scalar.type)
        return rows, np.array([what.turn(value) for value in given], np.int64)
    turns: Ints = values.to_numpy()
    if what.op not in ROUNDED_UP:
        turns = np.where(turns == FOREVER, turns, turns + 1)
    return rows, turns
