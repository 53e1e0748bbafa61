"""What an expression sees: the row of a relation, names for its columns, and the rows outside.

A `Row` belongs to one stage of one SELECT. Its relation grows while expressions are planned: a
subquery in an expression is attached to its right, and the expression refers to the new column. So
positions that were given out stay true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlglot import exp

from noonmark.errors import Unsupported
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import Field, Record, SqlType, Text
from noonmark.sql.dialect import position_of
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.ir.call import SortKey
from noonmark.sql.ir.relation import Apply, JoinKind, Relation
from noonmark.sql.ir.scalar import ColumnRef, MakeRecord, OuterRef, Scalar, column
from noonmark.sql.scope import Scope, missing_column, missing_table

#: The places of expressions that a table is defined by: over one row, and nothing else.
DEFINITIONS = frozenset(
    (
        "DEFAULT expressions",
        "check constraints",
        "column generation expressions",
        "transform expressions",
        "index expressions",
        "index predicates",
    )
)
POSITION = "\0"
"""Before a number: a column by its position. No statement can write it."""


@dataclass
class Statement:
    """What one statement's planning shares.

    Attributes:
        schemas: the collections by name.
        scopes: how many scopes there are so far.
        parameters: the types of $1, $2, ... that are known: stated by the client, or found; None
            where there can be no parameters.
        values: the parameters' values, when the plan is for one execution only.
        session: the functions that the session answers; None where none may be asked.
        late: whether the plan depends on the values: it is made again for each execution.
        types: the types that somebody made, by the parts of their names.
        key_of: the columns of a table's primary key, by the name of the table.
    """

    schemas: Mapping[str, Schema]
    scopes: int = 0
    parameters: dict[int, SqlType] | None = None
    values: Sequence[Any] | None = None
    session: Table[Function] | None = None
    late: bool = False
    types: Callable[[Sequence[str]], SqlType | None] = lambda _: None
    key_of: Callable[[str], Sequence[str]] = lambda _: ()

    def parameter_types(self) -> tuple[SqlType, ...]:
        """The types of $1, $2, ... once all is planned; text where nothing says another."""
        found = self.parameters or {}
        return tuple(found.get(at, Text()) for at in range(1, max(found, default=0) + 1))

    def fresh_scope(self) -> int:
        """The number of one more `Apply`."""
        self.scopes += 1
        return self.scopes


@dataclass(frozen=True)
class Named:
    """A name of WITH: its rows, and what its columns are called, which may repeat."""

    relation: Relation
    columns: tuple[str, ...]


@dataclass
class Row:
    """The columns that an expression may name; `place` is the clause it stands in, for errors."""

    statement: Statement
    place: str
    scope: Scope
    relation: Relation | None = None
    columns: tuple[Column, ...] = ()  # when there is no relation to attach to
    outer: Row | None = None
    outer_scope: int = 0  # the number of the Apply that gives the row outside
    names: Mapping[str, Named] = field(default_factory=dict)  # WITH
    order: tuple[SortKey, ...] = ()  # of the one subquery that the rows are of
    computed: dict[exp.Expr, Scalar] = field(default_factory=dict)
    match: Callable[[exp.Expr], Scalar | None] | None = None  # group keys
    refuse: Callable[[str, str | None, int | None], NoReturn] | None = None  # ungrouped columns

    def column_at(self, index: int) -> ColumnRef:
        """A reference to a column by position."""
        schema = self.columns if self.relation is None else self.relation.schema.columns
        return column(index, schema[index])

    def find(self, name: str, table: str | None, position: int | None) -> Scalar | None:
        """What a name stands for, here or outside."""
        by_position = name.startswith(POSITION)
        entry = (
            self.scope.at(int(name.removeprefix(POSITION)))
            if by_position
            else self.scope.find(name, table, position)
        )
        if entry is not None:
            if self.refuse is None:
                return self.column_at(entry.index)
            return self._grouped(name, table) or self.refuse(entry.name, entry.table, position)
        if self.outer is None:
            return None
        found = self.outer.find(name, table, position)
        if not isinstance(found, ColumnRef):
            return found
        return OuterRef(found.type, found.nullable, self.outer_scope, found.index, found.name)

    def _grouped(self, name: str, table: str | None) -> Scalar | None:
        """The group key that a column is, asked for from inside a subquery."""
        tree = exp.Column(
            this=exp.Identifier(this=name, quoted=True),
            table=None if table is None else exp.Identifier(this=table, quoted=True),
        )
        return None if self.match is None else self.match(tree)

    def named(self, name: str, table: str | None, position: int | None) -> Scalar:
        """What a name stands for.

        Raises:
            UndefinedColumn, UndefinedTable, AmbiguousColumn: it stands for nothing, or for several.
        """
        found = self.find(name, table, position)
        if found is None and table is None:
            found = self._whole(name, position)
        if found is None:
            scopes, row = [], self
            while True:
                scopes.append(row.scope)
                if row.outer is None:
                    break
                row = row.outer
            raise missing_column(name, table, scopes, position)
        return found

    def whole(self, name: str, position: int | None) -> Scalar:
        """The row of a table as one value."""
        found = self._whole(name, position)
        if found is None:
            raise missing_table(name, position)
        return found

    def _whole(self, name: str, position: int | None) -> Scalar | None:
        """All columns of the table of that name, as a record."""
        row: Row | None = self
        while row is not None and name not in row.scope.tables:
            row = row.outer
        if row is None:
            return None
        if name in row.scope.extended:
            # Its rows of NULL alone cannot be told from those that the join has added.
            raise Unsupported(
                f'the whole row of "{name}", which an outer join may fill up with NULL, '
                "is not supported",
                hint="Name its columns.",
                position=position,
            )
        entries = row.scope.star(name, position)
        # By position, where they are its own: names may repeat.
        own = row is self
        values = [
            self.named(f"{POSITION}{each.index}" if own else each.name, name, position)
            for each in entries
        ]
        if not values:
            return None
        if len({each.name for each in entries}) < len(entries):
            raise Unsupported(
                f'the whole row of "{name}", in which two columns have one name, is not supported',
                hint="Give its columns names of their own.",
                position=position,
            )
        fields = tuple(
            Field(each.name, value.type) for each, value in zip(entries, values, strict=True)
        )
        return MakeRecord(Record(fields), tuple(values))

    def attach(self, relation: Relation, scope: int, tree: exp.Expr) -> ColumnRef:
        """The one column of a relation of one row, asked for every row here."""
        if self.relation is None:
            if self.place in DEFINITIONS:
                message = f"cannot use subquery in {self.place.removesuffix('s')}"
                raise Unsupported(message, position=position_of(tree))
            raise unsupported(f"a subquery in {self.place}", tree)
        self.relation = Apply(JoinKind.INNER, self.relation, relation, scope)
        return self.column_at(len(self.relation.schema) - 1)


def name_of(identifier: exp.Expr | str | None) -> str:
    """An identifier as PostgreSQL folds it: lower case unless it is quoted."""
    if isinstance(identifier, exp.Identifier):
        return str(identifier.this) if identifier.args.get("quoted") else identifier.name.lower()
    return (identifier.name if isinstance(identifier, exp.Expr) else str(identifier)).lower()


def unsupported(what: str, tree: exp.Expr, hint: str | None = None) -> Unsupported:
    """The refusal of something by name, with its position."""
    return Unsupported(f"{what} is not supported", hint=hint, position=position_of(tree))
