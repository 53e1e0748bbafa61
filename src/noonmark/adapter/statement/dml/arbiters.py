"""The keys of a table that ON CONFLICT is about, and the rows that have a new row's.

Law (infer): a key is inferred iff its columns and its expressions are those that are named, and
what is said behind WHERE demands all that the condition of its index does. Without a target, every
key is one that rows may be in conflict by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from noonmark.adapter.aside import aside
from noonmark.adapter.catalog import Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.statement.dml.actions import has_key, with_keys
from noonmark.adapter.statement.dml.plan import Planning
from noonmark.adapter.statement.dml.read import Reading
from noonmark.adapter.statement.dml.target import Row, columns_of
from noonmark.adapter.table.constraints import key_name, uniques_of
from noonmark.adapter.table.keyed import Keyed, element, keyed, predicate
from noonmark.adapter.table.keys import ROW_WEIGHT
from noonmark.errors import InvalidReference, InvalidSyntax, UndefinedObject
from noonmark.rows.order import row_key
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.relation import Filter, Scan
from noonmark.sql.ir.scalar import Scalar, conjunction, conjuncts
from noonmark.sql.plan.row import name_of
from noonmark.sql.rules import simplify
from noonmark.sql.statement import statement as st


@dataclass(frozen=True)
class Key:
    """A key of a table: its columns, or an index; and whether NULL is a value there."""

    name: str
    columns: tuple[str, ...]
    nulls: bool
    index: Keyed | None = None

    def needed(self, item: Item) -> set[str]:
        """The columns that decide on a row's key."""
        if self.index is None:
            return set(self.columns)
        return {item.schema.names[at] for at in self.index.places}


def keys_of(item: Item) -> list[Key]:
    """All keys of a table."""
    own = [Key(key_name(item), item.key, False)] if item.key else []
    return own + [
        Key(each.name, each.columns, not each.nulls_distinct,
            None if each.is_plain else keyed(item, each))
        for each in uniques_of(item)
    ]  # fmt: skip


def arbiters(planning: Planning, item: Item, statement: st.Insert) -> tuple[Key, ...]:
    """The keys that ON CONFLICT is about."""
    keys = keys_of(item)
    if statement.conflict_constraint is not None:
        # An index is no constraint, whatever it is called.
        names = {item.definition.get("key_name") or f"{item.name}_pkey"} if item.key else set()
        names |= {each.name for each in uniques_of(item) if each.is_constraint}
        found = [key for key in keys if key.name == statement.conflict_constraint in names]
        if not found:
            raise UndefinedObject(
                f'constraint "{statement.conflict_constraint}" for table "{item.name}" '
                "does not exist"
            )
        return tuple(found)
    if statement.conflict_keys:
        return _inferred(planning, item, statement, keys)
    if statement.conflict == "update":
        raise InvalidSyntax(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=statement.table.position,
        )
    return tuple(keys)


def _inferred(
    planning: Planning, item: Item, statement: st.Insert, keys: Sequence[Key]
) -> tuple[Key, ...]:
    columns: set[str] = set()
    expressions: set[Scalar] = set()
    table = statement.alias or item.name
    for tree in statement.conflict_keys:
        if isinstance(tree, exp.Column):
            name = name_of(tree.this)
            columns_of(item, (name,), position_of(tree) or statement.table.position)
            columns.add(name)
        else:
            expressions.add(element(table, item.schema, tree, planning.statement))
    where = statement.conflict_of
    given = None if where is None else predicate(table, item.schema, where, planning.statement)
    said = set() if given is None else set(conjuncts(given))
    found = [key for key in keys if _is_meant(key, columns, expressions, said)]
    if not found:
        raise InvalidReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            hint="UNIQUE and PRIMARY KEY make rows unique.",
            position=statement.table.position,
        )
    return tuple(found)


def _is_meant(key: Key, columns: set[str], expressions: set[Scalar], said: set[Scalar]) -> bool:
    if set(key.columns) != columns:
        return False
    if key.index is None:
        return not expressions
    own = [each for each, name in zip(key.index.scalars, key.index.names, strict=True)
           if not _is_column(name, key.columns)]  # fmt: skip
    demanded = () if key.index.condition is None else conjuncts(key.index.condition)
    return set(own) == expressions and set(demanded) <= said


def _is_column(text: str, columns: Sequence[str]) -> bool:
    return text in columns or (text[:1] == '"' and text[1:-1].replace('""', '"') in columns)


class Arbiter:
    """The rows that have the keys of new rows, by one key of the table."""

    def __init__(self, item: Item, key: Key) -> None:
        self.key = key
        self._item = item
        self.places = tuple(item.schema.index(name) for name in key.columns)
        if key.index is None:
            self._equal = row_key(tuple(item.schema.columns[at].type for at in self.places))
        else:
            self._equal = key.index.form
        #: The keys of rows, by identity; the rows are kept, so that it is theirs.
        self._keys: dict[int, tuple[Row, Row | None]] = {}
        self._rows: dict[Row, Row] = {}
        self._own: set[Row] = set()

    async def learn(self, reading: Reading, rows: Sequence[Row]) -> None:
        """Have the keys of rows, which are asked for from now on."""
        weight = len(rows) * ROW_WEIGHT
        if self.key.index is None:
            keys: Sequence[Row | None] = await aside(
                weight, lambda: [tuple([row[place] for place in self.places]) for row in rows]
            )
        else:
            keys = await self.key.index.keys(reading.session.database.workers, rows)

        def keep() -> None:
            for row, key in zip(rows, keys, strict=True):
                asked = key is not None and (self.key.nulls or None not in key)
                self._keys[id(row)] = row, key if asked else None

        await aside(weight, keep)

    async def present(self, reading: Reading, rows: Sequence[Row]) -> None:
        """Read the rows that have the keys of new rows."""
        await self.learn(reading, rows)
        weight = len(rows) * ROW_WEIGHT
        keys = await aside(weight, self._asked, rows)
        if not keys:
            return
        scan = Scan(self._item.collection, self._item.schema)
        peek = await aside(len(keys) * ROW_WEIGHT, self._peek, scan, keys)
        found = list(await reading.multiset(peek))
        await self.learn(reading, found)
        await aside(len(found) * ROW_WEIGHT, self._keep, found)

    def _asked(self, rows: Sequence[Row]) -> set[Row]:
        keys = (self._keys[id(row)][1] for row in rows)
        return {key for key in keys if key is not None}

    def _peek(self, scan: Scan, keys: set[Row]) -> Peek:
        if any(None in key for key in keys):
            return Peek.of(scan)
        if self.key.index is None:
            return Peek.of(simplify(Filter(scan, has_key(self._item, self.places, keys))))
        condition = self.key.index.condition
        parts = [with_keys(self.key.index.scalars, keys)]
        return Peek.of(simplify(Filter(scan, conjunction([*([condition] if condition else []),
                                                          *parts]))))  # fmt: skip

    def _keep(self, rows: Sequence[Row]) -> None:
        for found in rows:
            form = self._form(found)
            if form is not None:
                self._rows[form] = found

    def _form(self, row: Row) -> Any:
        key = self._keys[id(row)][1]
        return None if key is None else self._equal(key)

    def of(self, row: Row) -> Row | None:
        """The row that has the key of a new one."""
        form = self._form(row)
        return None if form is None else self._rows.get(form)

    def is_own(self, row: Row) -> bool:
        """Whether the statement itself wrote that row."""
        return self._form(row) in self._own

    def put(self, row: Row) -> None:
        """The statement wrote a row of that key."""
        form = self._form(row)
        if form is not None:
            self._rows[form] = row
            self._own.add(form)
