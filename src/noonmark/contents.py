"""Reading a location without a server and without Java: one relation, at one time.

    noonmark.read("data", "v").to_polars()                      # the newest complete time
    noonmark.read("data", "s.v", as_of="2026-11-16 12:00Z").to_arrow()

It is a reader of its own, which asks nobody: a server may write to the location meanwhile. What it
reads is exact at its time, as it is for SQL; a relation that has an error at that time raises it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from noonmark import shown
from noonmark.adapter.peek.errors import error_of
from noonmark.compute.plan.naming import errors_name
from noonmark.errors import ConfigError, NotYetComplete, UnknownCollection, UsageError
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.part.run import DIFF
from noonmark.rows import arrow
from noonmark.rows.moment import Time, time_of
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Schema
from noonmark.storage.description import description_of


@dataclass(frozen=True)
class Contents:
    """The rows of a relation at one time.

    Attributes:
        as_of: the time, in milliseconds since the epoch.
    """

    as_of: int
    _schema: Schema
    _table: pa.Table

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; numeric without a precision is text."""
        return arrow.texts_for_numerals(self._table, self._schema)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`, where polars is installed."""
        return shown.to_polars(self.to_arrow())

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return [tuple(row) for row in arrow.from_table(self._table, self._schema)]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For DuckDB, polars and whatever else takes Arrow's streams."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """How notebooks show it: the first rows."""
        first = arrow.from_table(self._table.slice(0, shown.ROWS_SHOWN), self._schema)
        texts = [
            [None if value is None else format_value(value, column.type)
             for value, column in zip(row, self._schema, strict=True)]
            for row in first
        ]  # fmt: skip
        return shown.html(self._schema.names, texts, len(self))


def read(url: str, name: str, as_of: Time | None, consensus: str | None) -> Contents:
    """See `noonmark.read`."""
    with _opened(url, consensus) as client:
        schema, time, tables = _tables(client, name, as_of)
        empty = arrow.to_table([], schema)
        table = pa.concat_tables([empty, *(each.cast(empty.schema) for each in tables)])
    return Contents(time, schema, table)


def _opened(url: str, consensus: str | None) -> Client:
    client = open_location(url, consensus=consensus, options=Options(mode="independent"))
    if client.state.seqno == 0:
        client.stop()
        raise ConfigError(f'there is no storage location at "{url}"')
    return client


def _tables(
    client: Client, name: str, as_of: Time | None
) -> tuple[Schema, int, Iterator[pa.Table]]:
    """The columns, the time, and the rows in pieces, each row as often as it is there."""
    stored = name.removeprefix("public.")
    if stored not in client.state.names:
        raise UnknownCollection(f'no relation "{name}" is stored', name=name)
    _, handle = client.create_or_load(stored)
    time = _newest(handle.upper.only(), name) if as_of is None else time_of(as_of)
    check_errors(client, stored, time)
    snapshot = handle.snapshot(time, wait=False).result()
    return handle.codec.schema, time, (_repeated(each) for each in snapshot.tables())


def check_errors(client: Client, view: str, time: int) -> None:
    """Raise the error that a view has instead of rows at a time, if it has one."""
    found = client.state.collection(view)
    errors = errors_name(view)
    if not found.annotation or errors not in client.state.names:
        return
    if description_of(found).kind not in ("view", "materialized-view", "index"):
        return
    rows = client.create_or_load(errors)[1].snapshot(time, wait=False).result().counts()
    for sqlstate, message, *_ in sorted(rows):
        raise error_of(sqlstate, message, view)


def _repeated(table: pa.Table) -> pa.Table:
    """Rows as often as their diff says."""
    diffs, rows = table.column(DIFF), table.drop_columns([DIFF])
    if not table.num_rows or pc.max(diffs).as_py() == 1:
        return rows
    places = [at for at, diff in enumerate(diffs.to_pylist()) for _ in range(diff)]
    return rows.take(pa.array(places, pa.int64()))


def _newest(upper: int | None, name: str) -> int:
    if upper is None:
        raise UsageError(f'"{name}" is complete for ever: say as of which time')
    if upper == 0:
        raise NotYetComplete(f'"{name}" has no complete time yet')
    return upper - 1


@click.command("export")
@click.argument("name")
@click.option("--to", "target", required=True, metavar="FILE", help="The Parquet file to write.")
@click.option("--as-of", metavar="T", help="Milliseconds or a timestamp; the newest by default.")
@click.option("--data", default="./noonmark-data", show_default=True, help="The storage location.")
@click.option("--consensus", metavar="URL", help="Its log, when that is elsewhere.")
def export(name: str, target: str, as_of: str | None, data: str, consensus: str | None) -> None:
    """Write the rows of a relation at one time to a Parquet file."""
    with _opened(data, consensus) as client:
        schema, time, tables = _tables(client, name, as_of)
        form = arrow.texts_for_numerals(arrow.to_table([], schema), schema).schema
        count = 0
        with parquet.ParquetWriter(target, form, compression="zstd") as writer:
            for each in tables:
                writer.write_table(arrow.texts_for_numerals(each, schema).cast(form))
                count += each.num_rows
    click.echo(f"{count} rows of {name} as of {time} in {target}")
