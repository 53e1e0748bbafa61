"""Names: which column of the row a name in a query stands for.

A scope is what FROM makes: the columns of its tables side by side, in one row. A name is looked for
in the innermost scope first; what is found in an outer one is a correlated reference. Inside one
scope an unqualified name must be the name of one column; a merged column of USING counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from noonmark.errors import AmbiguousColumn, DuplicateAlias, UndefinedColumn, UndefinedTable
from noonmark.rows.schema import Schema

#: The relation that a row of a catalog is in; PostgreSQL lets no table of users have such a column.
SYSTEM_COLUMN = "tableoid"


@dataclass(frozen=True, slots=True)
class Entry:
    """One column that can be named."""

    table: str | None
    name: str
    index: int
    hidden: bool = False  # only by its qualified name: the other half of a USING column
    system: bool = False  # only by its name: no ``*`` has it
    key: bool = False  # a column of its table's primary key, on which the others depend


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of a FROM, in the order of ``*``."""

    entries: tuple[Entry, ...] = ()
    tables: tuple[str, ...] = ()
    extended: frozenset[str] = frozenset()  # tables that an outer join fills up with NULL

    @classmethod
    def of(cls, table: str, names: Iterable[str]) -> Scope:
        """The scope of one table."""
        return cls(tuple(Entry(table, name, at) for at, name in enumerate(names)), (table,))

    def beside(self, other: Scope, width: int, position: int | None = None) -> Scope:
        """This scope and another one, whose columns stand `width` places further right."""
        for table in other.tables:
            if table in self.tables:
                raise DuplicateAlias(
                    f'table name "{table}" specified more than once', position=position
                )
        moved = tuple(replace(entry, index=entry.index + width) for entry in other.entries)
        tables = self.tables + other.tables
        return Scope(self.entries + moved, tables, self.extended | other.extended)

    def find(self, name: str, table: str | None, position: int | None) -> Entry | None:
        """The column of that name; None if there is none."""
        if table is None:
            found = [e for e in self.entries if e.name == name and not e.hidden]
        else:
            found = [e for e in self.entries if e.name == name and e.table == table]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        return found[0] if found else None

    def at(self, index: int) -> Entry:
        """The column at a position of the row."""
        return next(entry for entry in self.entries if entry.index == index)

    def star(self, table: str | None, position: int | None) -> list[Entry]:
        """The columns that ``*`` or ``table.*`` stands for."""
        if table is None:
            return [entry for entry in self.entries if not entry.hidden and not entry.system]
        if table not in self.tables:
            raise missing_table(table, position)
        own = [entry for entry in self.entries if entry.table == table and not entry.system]
        return sorted(own, key=lambda entry: entry.index)


def missing_table(table: str, position: int | None) -> UndefinedTable:
    """A qualified name whose table is not in FROM."""
    return UndefinedTable(f'missing FROM-clause entry for table "{table}"', position=position)


def missing_column(
    name: str, table: str | None, scopes: Sequence[Scope], position: int | None
) -> UndefinedColumn | UndefinedTable:
    """A name that no scope has, with the nearest one that some scope has."""
    if table is not None and not any(table in scope.tables for scope in scopes):
        return missing_table(table, position)
    shown = f"{table}.{name}" if table is not None else f'"{name}"'
    near = _nearest(name, [entry for scope in scopes for entry in scope.entries])
    return UndefinedColumn(
        f"column {shown} does not exist",
        hint=near and f'Perhaps you meant to reference the column "{near}".',
        position=position,
    )


def _nearest(name: str, entries: Iterable[Entry]) -> str | None:
    from difflib import get_close_matches

    shown = {e.name: f"{e.table}.{e.name}" if e.table else e.name for e in entries}
    found = get_close_matches(name, shown, n=1, cutoff=0.7)
    return shown[found[0]] if found else None


def scope_of(table: str, schema: Schema, key: Sequence[str] = ()) -> Scope:
    """The scope of one table by its schema and its primary key."""
    names = enumerate(schema.names)
    entries = [
        Entry(table, name, at, system=name == SYSTEM_COLUMN, key=name in key) for at, name in names
    ]
    return Scope(tuple(entries), (table,))
