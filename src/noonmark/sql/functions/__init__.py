"""The functions and operators that SQL may use: one table, each entry with its meaning in Python.

`FUNCTIONS` are scalar, `AGGREGATES` fold the rows of a group, `WINDOWS` look at a row's partition,
`TABLE_FUNCTIONS` give rows. Nothing outside these tables can be called.
"""

from __future__ import annotations

from noonmark.sql.functions import (
    aggregate,
    angle,
    array,
    binary,
    calendar,
    digest,
    document,
    extract,
    identifier,
    jsonb,
    key,
    number,
    numeric,
    quoting,
    regexp,
    rowset,
    statistics,
    template,
    template_read,
    text,
    unicode,
    window,
    zoned,
)
from noonmark.sql.functions.aggregate import Aggregator
from noonmark.sql.functions.function import Function, Table

FUNCTIONS: Table[Function] = Table()
for _module in (
    *(number, numeric, angle, text, regexp, unicode, quoting, binary, digest, identifier),
    *(calendar, zoned, extract, template, template_read, array, jsonb, document, key),
):
    FUNCTIONS.add(_module.TABLE)

AGGREGATES: Table[Aggregator] = Table()
AGGREGATES.add(aggregate.TABLE)
AGGREGATES.add(statistics.TABLE)

WINDOWS: Table[Function] = Table()
WINDOWS.add(window.TABLE)

TABLE_FUNCTIONS: Table[Function] = Table()
TABLE_FUNCTIONS.add(rowset.TABLE)
