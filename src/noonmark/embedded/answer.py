"""What a query gives back: the rows of one time, or what happens to them step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from noonmark import shown
from noonmark.adapter.contract import Field, Row
from noonmark.compute.jvm.session import Frame, Session
from noonmark.rows import arrow
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import is_plain
from noonmark.sql.ir.relation import distinct_names
from noonmark.tvc import Update


@dataclass(frozen=True)
class Answer:
    """The rows of a query, at the one time at which it was asked."""

    fields: tuple[Field, ...]
    _rows: list[Row]
    _spark: Callable[[], Session]

    def rows(self) -> list[Row]:
        """The rows as tuples of Python values."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; columns of one name are told apart by numbers.

        Arrow has no number of any size: numeric without a precision is text.
        """
        names = distinct_names([field.name for field in self.fields])
        columns = zip(names, self.fields, strict=True)
        schema = Schema(tuple(Column(name, field.type) for name, field in columns))
        return arrow.texts_for_numerals(arrow.to_table(self._rows, schema), schema)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`; a numeric of any size is a Decimal."""
        frame = self.to_arrow().to_pandas()
        for at, field in enumerate(self.fields):
            if is_plain(field.type):
                frame.isetitem(at, [row[at] for row in self._rows])
        return frame

    def to_spark(self) -> Frame:
        """The rows as a DataFrame of the database's Spark session."""
        return self._spark().createDataFrame(self.to_arrow())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`, where polars is installed."""
        return shown.to_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        """How notebooks show it: the first rows."""
        texts = [
            [None if value is None else format_value(value, field.type)
             for value, field in zip(row, self.fields, strict=True)]
            for row in self._rows[: shown.ROWS_SHOWN]
        ]  # fmt: skip
        return shown.html([field.name for field in self.fields], texts, len(self._rows))


@dataclass(frozen=True)
class Step:
    """What happened to a query's answer, and up to where that is all.

    Attributes:
        updates: rows that came and went, with their times.
        progress: every time before it is complete.
    """

    updates: list[Update[Row, int]]
    progress: int
