"""Rows that come in as columns, for whoever asks for them one by one.

Law (same): it is the list of the table's rows, each with a diff of 1, until it is extended; then it
is that list with what was added. They are made of the columns when somebody first looks at one.
Law (counted): who keeps them is asked for the memory that rows take more than columns before there
are rows, and may refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import overload

import pyarrow as pa

from noonmark.adapter.table.requests import Write
from noonmark.rows.arrow import from_table
from noonmark.rows.schema import Schema

#: What a row takes, and a value in it, beside the text that the columns have as well.
_ROW_BYTES, _VALUE_BYTES = 56, 72


class InsertedRows(Sequence[Write]):
    """See the module; `table` is None once there are rows."""

    def __init__(
        self, table: pa.Table, schema: Schema, grow: Callable[[int], None] = lambda _: None
    ) -> None:
        self._grow = grow
        self.table: pa.Table | None = table
        self._schema = schema
        self._listed: list[Write] = []

    def _rows(self) -> list[Write]:
        if self.table is not None:
            count, width = self.table.num_rows, self.table.num_columns
            self._grow(count * (_ROW_BYTES + width * _VALUE_BYTES))
            self._listed = [(row, 1) for row in from_table(self.table, self._schema)]
            self.table = None
        return self._listed

    def __len__(self) -> int:
        return len(self._listed) if self.table is None else int(self.table.num_rows)

    @overload
    def __getitem__(self, at: int) -> Write: ...

    @overload
    def __getitem__(self, at: slice) -> list[Write]: ...

    def __getitem__(self, at: int | slice) -> Write | list[Write]:
        return self._rows()[at]

    def extend(self, rows: Iterable[Write]) -> None:
        """Add rows."""
        self._rows().extend(rows)
