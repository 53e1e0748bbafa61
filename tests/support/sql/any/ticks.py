"""What befalls the tables of views between two reads: statements that no ordinary value fails.

Each changes a table in the same way on both sides: rows come, go and change by every statement that
writes, keys move, what was done is undone by a savepoint, a table is emptied, and an enum gets a
label between two others.
"""

from __future__ import annotations

from collections.abc import Callable

from support.sql.any.choices import Choices
from support.sql.any.values import Table, quoted, value

#: Keys of rows that came later stand above those of the first ones.
_LATER = 100


def added_label(choices: Choices, number: int, tables: list[Table]) -> tuple[str, list[str]]:
    """A label that the type has not, somewhere among those that it has; and how rows get it."""
    place = choices.pick(("before 'ok'", "after 'sad'", "before 'sad'", "after 'Angry'"))
    label = quoted(f"new {number}")
    use = [
        f"update {table.name} set {name} = {label} where k % 3 = 1"
        for table in tables
        for name, kind in table.written
        if kind == "enum"
    ]
    return f"alter type mood add value {label} {place}", use


def change(choices: Choices, tables: list[Table]) -> str:
    """A statement, or several that belong together."""
    table = choices.pick(tables)
    forms: list[Callable[[Choices, Table], str]] = [
        _insert, _insert, _delete, _update, _several, _merge, _moved, _undone, _copied,
    ]  # fmt: skip
    if table.key:
        forms += [_upsert, _upsert]
    elif choices.often(1, 8):
        return f"truncate {table.name}"
    if choices.often(1, 8):
        return _update_from(choices, table, tables)
    return choices.pick(forms)(choices, table)


def _number(choices: Choices) -> int:
    return _LATER + choices.below(1_000_000)


def _insert(choices: Choices, table: Table) -> str:
    return f"insert into {table.name} values {table.row(choices, _number(choices))}"


def _several(choices: Choices, table: Table) -> str:
    first = _number(choices)
    rows = ", ".join(table.row(choices, first + at) for at in range(2 + choices.below(20)))
    return f"insert into {table.name} values {rows} on conflict do nothing"


def _upsert(choices: Choices, table: Table) -> str:
    first = choices.below(12)
    rows = ", ".join(table.row(choices, first + at) for at in range(1 + choices.below(4)))
    sets = ", ".join(f"{name} = excluded.{name}" for name, _ in _some(choices, table))
    return f"insert into {table.name} values {rows} on conflict (k) do update set {sets}"


def _some(choices: Choices, table: Table) -> list[tuple[str, str]]:
    chosen = [each for each in table.written if choices.often(1, 2)]
    return chosen or [table.written[0]]


def _delete(choices: Choices, table: Table) -> str:
    key = choices.below(12)
    return f"delete from {table.name} where k = {key} or k > {_LATER + choices.below(900_000)}"


def _update(choices: Choices, table: Table) -> str:
    name, kind = choices.pick(table.written)
    made = value(choices, kind) if choices.below(5) else "null"
    return f"update {table.name} set {name} = {made} where k >= {choices.below(12)}"


def _moved(_: Choices, table: Table) -> str:
    return f"update {table.name} set k = -k - 1000 where k > {_LATER} and k < 500000"


def _update_from(choices: Choices, table: Table, tables: list[Table]) -> str:
    """What another row has, by its key."""
    pairs = [
        (other, mine, theirs)
        for other in tables
        if other.key and other is not table
        for mine, kind in table.written
        for theirs, own in other.columns[1:]
        if own == kind
    ]
    if not pairs:
        return _update(choices, table)
    other, mine, theirs = choices.pick(pairs)
    return (
        f"update {table.name} as x set {mine} = s.{theirs} from {other.name} as s where s.k = x.k"
    )


def _merge(choices: Choices, table: Table) -> str:
    first = choices.below(12)
    name, kind = choices.pick(table.written)
    rows = ", ".join(f"({first + at}, {value(choices, kind)})" for at in range(3))
    head = f"merge into {table.name} as x using (values {rows}) as s(k, made) on x.k = s.k"
    return (
        f"{head} when matched and s.made is null then delete"
        f" when matched and x.k % 2 = 0 then update set {name} = s.made"
        f" when matched then delete"
        f" when not matched then insert (k, {name}) values (s.k, s.made)"
    )


def _undone(choices: Choices, table: Table) -> str:
    """What a savepoint takes back, between what stays."""
    gone = f"savepoint s; {_update(choices, table)}; delete from {table.name} where k > 3"
    return f"{_insert(choices, table)}; {gone}; rollback to s"


def _copied(choices: Choices, table: Table) -> str:
    """Rows once more, under other keys."""
    names = ", ".join(name for name, _ in table.written)
    first = 2_000_000 + 1000 * choices.below(1_000_000)
    rows = f"select {first} + k, {names} from {table.name} where k between 0 and 5"
    ends = " on conflict do nothing" if table.key else ""
    return f"insert into {table.name} (k, {names}) {rows}{ends}"
