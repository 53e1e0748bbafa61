"""Statements of a transaction are told at once where what they write breaks a constraint.

What a transaction writes waits for COMMIT. Each statement's rows are tried when they are written:
against what is stored now, and against what the transaction wrote before.

Law (told early): a statement whose rows COMMIT would refuse for a key, a UNIQUE or a FOREIGN KEY,
if nobody else wrote, is refused itself; a foreign key that is deferred is asked at COMMIT.

Trying changes nothing, and promises nothing: others may write before COMMIT, which checks again.

Where it runs: the adapter's loop, between two commits of the committer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from noonmark.adapter.aside import aside
from noonmark.adapter.table.constraints import Unique, key_name
from noonmark.adapter.table.enforce import Columns, Computed, Constraints, Group, Trial, duplicate
from noonmark.adapter.table.keys import ROW_WEIGHT, Keys
from noonmark.adapter.table.lookups import Stored
from noonmark.adapter.table.requests import Row, Try, Write


@dataclass
class Pending:
    """What a transaction wrote, counted by keys."""

    trial: Trial = field(default_factory=Trial)
    keys: Trial = field(default_factory=Trial)

    @classmethod
    def of(cls, group: Group, writes: Mapping[str, Sequence[Write]], computed: Computed) -> Pending:
        """Everything of a transaction."""
        made = cls(Trial().add(group, writes, computed))
        for name, rows in writes.items():
            _count_keys(group, name, rows, made.keys)
        return made


def _count_keys(
    group: Group, name: str, rows: Sequence[Write], keys: Trial
) -> tuple[Columns, Counter[Row]] | None:
    item = group.catalog.of_collection(name)
    if item is None or not item.key:
        return None
    columns, counts = Columns(item.schema, item.key), keys.count((item.number, item.key))
    for row, diff in rows:
        counts[columns.form(columns.key(item.schema.fill(row)))] += diff
    return columns, counts


async def tried(group: Group, stored: Stored, constraints: Constraints, attempt: Try) -> Pending:
    """What the transaction has written with this statement.

    Raises:
        UniqueViolation, ForeignKeyViolation: it may not.
    """
    before: Pending | None = attempt.pending
    if before is None:
        pending = await constraints.computed(group, attempt.before)
        before = Pending.of(group, attempt.before, pending)
    known = {name: rows for name, rows in attempt.writes.items() if group.stored(name)}
    present = await stored.present(known)
    await constraints.prepare(group, attempt.writes)
    computed = await constraints.computed(group, attempt.writes)
    weight = ROW_WEIGHT * sum(map(len, attempt.writes.values()))
    found = partial(_tried, group, constraints, attempt, present=present, computed=computed)
    return await aside(weight, found, before)


def _tried(
    group: Group,
    constraints: Constraints,
    attempt: Try,
    before: Pending,
    *,
    present: Mapping[str, Keys],
    computed: Computed,
) -> Pending:
    keys = Trial(below=before.keys)
    for name, rows in attempt.writes.items():
        counted = _count_keys(group, name, rows, keys)
        if counted is None:
            continue
        item, columns = group.catalog.of_collection(name), counted[0]
        assert item is not None
        there: Counter[Row] = Counter()
        for row, count in present[name].rows.items() if name in present else ():
            there[columns.form(columns.key(row))] += count
        for row, diff in rows:
            key = columns.key(item.schema.fill(row))
            form = columns.form(key)
            if diff > 0 and there[form] + keys.total((item.number, item.key), form) > 1:
                raise duplicate(item, Unique(key_name(item), item.key), columns.shown(key))
    own = constraints.check(group, attempt.writes, before.trial, computed, attempt.waits)
    before.trial.take(own)
    before.keys.take(keys)
    return before
