"""The schema of a collection's rows.

A schema is a sequence of columns with distinct names. It may grow: `Schema.extend` adds nullable
columns at the end, and nothing else ever changes. So a row written under an older schema is read
under a newer one by filling in NULLs.

Law (wire): ``Schema.from_wire(s.to_wire()) == s``.
Law (evolution): ``s.extend(more)`` starts with the columns of s, and every column after them is
nullable; `Schema.extends` decides exactly that.

``_time`` and ``_diff`` are taken: parts store them beside the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import SchemaMismatch, UsageError
from noonmark.rows.domain import Domain
from noonmark.rows.types import (
    SqlType,
    parse_stored,
    parse_type,
    quote_name,
    stored_spelling,
)

RESERVED_NAMES = frozenset({"_time", "_diff"})


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Names are case-sensitive, as quoted identifiers are.

    The domain that it is declared as is no part of what it is: its values are of the type.
    """

    name: str
    type: SqlType
    nullable: bool = True
    domain: Domain | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.name or "\0" in self.name:
            raise UsageError(f"{self.name!r} cannot be the name of a column")
        if self.name in RESERVED_NAMES:
            raise UsageError(
                f'column name "{self.name}" is reserved',
                detail="Stored rows carry their time and diff under the reserved names.",
                hint="Choose another name.",
            )

    @property
    def declared(self) -> SqlType:
        """What it is declared as: its domain, or its type."""
        return self.type if self.domain is None else self.domain

    def __str__(self) -> str:
        return f"{quote_name(self.name)} {self.declared}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a row, in order."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple(column.name for column in self.columns)
        index = {name: at for at, name in enumerate(names)}
        if len(index) != len(names):
            twice = next(name for at, name in enumerate(names) if index[name] != at)
            raise SchemaMismatch(f'column "{twice}" is specified more than once', column=twice)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_index", index)

    @classmethod
    def of(cls, **types: str | SqlType) -> Schema:
        """A schema by keyword; a type that ends in ``not null`` makes a column required.

        >>> str(Schema.of(id="bigint not null", name="text"))
        '(id bigint NOT NULL, name text)'
        """
        return cls(tuple(_column(name, spec) for name, spec in types.items()))

    @classmethod
    def from_wire(cls, wire: Iterable[Sequence[Any]]) -> Schema:
        """The inverse of `to_wire`; takes tuples or the lists that decoders make of them."""
        return cls(tuple(Column(name, parse_stored(text), bool(null)) for name, text, null in wire))

    def to_wire(self) -> list[tuple[str, str, bool]]:
        """Name, type and nullability as plain data, for the log and for other processes."""
        return [(c.name, stored_spelling(c.type), c.nullable) for c in self.columns]

    def extend(self, columns: Iterable[Column]) -> Schema:
        """This schema with more columns at the end, all of them nullable."""
        added = tuple(columns)
        for column in added:
            if not column.nullable:
                raise SchemaMismatch(
                    f'column "{column.name}" cannot be added as NOT NULL',
                    detail="Rows that are already stored have no value for it.",
                    hint="Add it as a nullable column.",
                    column=column.name,
                )
            if column.name in self:
                raise SchemaMismatch(
                    f'column "{column.name}" already exists',
                    detail=f"The schema is {self}.",
                    hint="Columns can only be added, under new names.",
                    column=column.name,
                )
        return Schema(self.columns + added)

    def extends(self, older: Schema) -> bool:
        """Whether `older.extend(...)` can give this schema."""
        count = len(older)
        return self.columns[:count] == older.columns and all(
            column.nullable for column in self.columns[count:]
        )

    def fill(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row of an older schema as a row of this one: NULL in every column added since.

        >>> Schema.of(a="bigint", b="text").fill((1,))
        (1, None)
        """
        missing = len(self.columns) - len(row)
        return row if not missing else (*row, *(None,) * missing)

    def index(self, name: str) -> int:
        """The position of the column of that name."""
        try:
            return self._index[name]
        except KeyError:
            raise SchemaMismatch(
                f'column "{name}" does not exist', detail=f"The schema is {self}.", column=name
            ) from None

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __hash__(self) -> int:
        return hash(self.columns)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.columns))})"


def _column(name: str, spec: str | SqlType) -> Column:
    if isinstance(spec, SqlType):
        return Column(name, spec)
    words = spec.split()
    if [word.lower() for word in words[-2:]] == ["not", "null"]:
        return Column(name, parse_type(" ".join(words[:-2])), nullable=False)
    return Column(name, parse_type(spec))
