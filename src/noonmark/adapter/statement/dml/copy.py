"""COPY: rows of a client into a table, and rows of a table or a query to a client.

COPY FROM is one commit: nothing of it is there before `finish` returned, and then all of it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.adapter.catalog import Item
from noonmark.adapter.contract import CopyFormat, CopyOut, Done, Field, Outcome, Row, Rows
from noonmark.adapter.session.recorded import without_rows
from noonmark.adapter.session.transaction import writing
from noonmark.adapter.statement.dml.default import default_value
from noonmark.adapter.statement.dml.fitting import domain_checks, fitted_rows
from noonmark.adapter.statement.dml.read import write
from noonmark.adapter.statement.dml.target import columns_of, target
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.system.settings import path_of
from noonmark.adapter.table.generated import texts_of
from noonmark.errors import InvalidReference, InvalidSyntax, InvalidValue, NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type, from_table, to_table
from noonmark.rows.identity import hashable
from noonmark.rows.refine import refine
from noonmark.rows.types import quote_name
from noonmark.sql import dialect
from noonmark.sql.assign import loose
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


def format_of(options: st.Options) -> CopyFormat:
    """How the rows are written.

    Raises:
        InvalidSyntax: options that do not go together.
    """
    kind = options.get("format", "text")
    csv = kind == "csv"
    quote = str(options.get("quote", '"'))
    made = CopyFormat(
        kind,
        str(options.get("delimiter", "," if csv else "\t")),
        str(options.get("null", "" if csv else "\\N")),
        bool(options.get("header", False)),
        quote,
        str(options.get("escape", quote)),
    )
    for name in ("delimiter", "quote", "escape"):
        text = getattr(made, name)
        if len(text.encode()) != 1 or text in "\r\n":
            raise InvalidSyntax(f"COPY {name} must be a single one-byte character")
    if not csv and ({"quote", "escape"} & set(options)):
        raise InvalidSyntax("COPY quote and escape are available only in CSV mode")
    return made


#: Rows that take so much are made a table, which takes a tenth of it.
ROWS_BYTES = 8 << 20


class CopyFrom:
    """See the module; `contract.CopyIn`."""

    def __init__(
        self, session: AdapterSession, item: Item, places: tuple[int, ...], format: CopyFormat
    ) -> None:
        self._session = session
        self._item = item
        self._places = places
        columns = [item.schema.columns[place] for place in places]
        self.fields = tuple(Field(each.name, loose(each.type)) for each in columns)
        self.format = format
        self._rows: list[Row] = []
        self._rows_size = 0
        self._tables: list[pa.Table] = []
        self._taken = 0
        self._stored = to_table([], item.schema).schema
        whole = places == tuple(range(len(item.schema)))
        free = not {"checks", "not_null"} & item.definition.keys()
        self.takes_tables = whole and free and not domain_checks(item)

    async def write(self, rows: Sequence[Row]) -> None:
        """See `contract.CopyIn.write`."""
        width, places = len(self._item.schema), self._places
        whole = places == tuple(range(width))
        rest = [] if whole else [at for at in range(width) if at not in places]
        made: list[list[Any]] = []
        for row in rows:
            values: list[Any] = [None] * width
            for place, value in zip(places, row, strict=True):
                values[place] = hashable(value)
            for at in rest:
                values[at] = default_value(self._session, self._item, at)
            made.append(values)
            self._rows_size += _size(values)
        try:
            self._rows += await fitted_rows(self._session.database.workers, self._item, made)
        except NoonmarkError as error:
            raise without_rows(self._session, error) from None
        if self._rows_size >= ROWS_BYTES:
            self._keep(to_table(self._rows, self._item.schema))
            self._rows, self._rows_size = [], 0

    def write_table(self, table: pa.Table) -> bool:
        """See `contract.CopyIn.write_table`."""
        arrays = []
        for column, array in zip(self._item.schema.columns, table.columns, strict=True):
            if array.null_count and not column.nullable:
                return False  # a row says which one it is
            try:
                arrays.append(_sized(array, column.type))
            except InvalidValue:
                return False  # too long, or longer by blanks that are cut
        self._keep(pa.Table.from_arrays(arrays, schema=self._stored))
        return True

    def _keep(self, table: pa.Table) -> None:
        size = table.nbytes
        self._session.database.copies.take(size)
        self._taken += size
        self._tables.append(table)

    async def finish(self) -> Done:
        """See `contract.CopyIn.finish`."""
        try:
            return await self._write_all()
        except NoonmarkError as error:
            raise without_rows(self._session, error) from None
        finally:
            await self.fail()

    async def _write_all(self) -> Done:
        rows, tables = self._rows, self._tables
        count = len(rows) + sum(table.num_rows for table in tables)
        if tables and await writing(self._session) is None and await self._insert(tables, rows):
            return Done(f"COPY {count}")
        for table in tables:
            rows += from_table(table, self._item.schema)
        await write(self._session, {self._item.collection: [(row, 1) for row in rows]})
        return Done(f"COPY {count}")

    async def _insert(self, tables: Sequence[pa.Table], rows: Sequence[Row]) -> bool:
        """Commit everything as columns; False where it takes rows."""
        rest = [to_table(rows, self._item.schema)] if rows else []
        data = pa.concat_tables([*tables, *rest])
        database = self._session.database
        return await database.tables.insert(self._item.collection, data) is not None

    async def fail(self) -> None:
        """See `contract.CopyIn.fail`."""
        self._rows, self._tables = [], []
        self._session.database.copies.free(self._taken)
        self._taken = 0


def _size(values: Sequence[Any]) -> int:
    """About how much memory a row takes that is not a table yet."""
    return sum(100 + len(each) if isinstance(each, str | bytes) else 100 for each in values)


def _sized(column: pa.ChunkedArray, kind: t.SqlType) -> pa.ChunkedArray:
    """The column of the type without its length as one of the type."""
    if loose(kind) == kind:
        return column
    return pa.chunked_array([refine(each, kind) for each in column.chunks], arrow_type(kind))


async def run_copy(session: AdapterSession, statement: st.Copy, _: Sequence[Any]) -> Outcome:
    """COPY FROM STDIN or TO STDOUT."""
    made = format_of(statement.options)
    if statement.direction == "from":
        assert statement.table is not None, "the parser takes only a table FROM STDIN"
        item = target(session, session.catalog, statement.table, "copy to")
        session.access("COPY FROM").check("target", item)
        await writing(session)
        places = columns_of(item, _copied(item, statement), statement.table.position)
        return CopyFrom(session, item, places, made)
    if statement.table is not None:
        item = session.catalog.resolve(statement.table.parts, path=path_of(session))
        statement = replace(statement, columns=_copied(item, statement))
        columns_of(item, statement.columns, None)
    outcome = await session.run(statement.statement or _select(statement))
    assert isinstance(outcome, Rows), "a query gives rows"
    return CopyOut(outcome.fields, outcome.chunks, made)


def _copied(item: Item, statement: st.Copy) -> tuple[str, ...]:
    """The columns that a COPY names; without generated ones if it names none.

    Raises:
        InvalidReference: a generated one is named.
    """
    computed = texts_of(item)
    for name in statement.columns:
        if name in computed:
            raise InvalidReference(
                f'column "{name}" is a generated column',
                detail="Generated columns cannot be used in COPY.",
            )
    if statement.columns or not computed:
        return statement.columns
    return tuple(name for name in item.schema.names if name not in computed)


def _select(statement: st.Copy) -> st.Select:
    """COPY table TO is COPY (SELECT columns FROM table) TO."""
    table = statement.table
    assert table is not None
    columns = ", ".join(map(quote_name, statement.columns)) or "*"
    text = f"SELECT {columns} FROM {'.'.join(map(quote_name, table.parts))}"
    return st.Select(st.QueryText(text, table.position, dialect.parse(text)))


HANDLERS: Handlers = {st.Copy: run_copy}
