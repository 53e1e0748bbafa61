"""The functions and operators that SQL may use: one table, each entry with its meaning in Python.

`FUNCTIONS` are scalar, `AGGREGATES` fold the rows of a group, `WINDOWS` look at a row's partition,
`TABLE_FUNCTIONS` give rows. Nothing outside these tables can be called.
"""

from __future__ import annotations

from noonmark.sql.functions import (
    addresses,
    aggregate,
    array,
    bits,
    coded_aggregates,
    document,
    domain,
    enums,
    identifier,
    json,
    jsonb,
    key,
    log,
    ranges,
    rowset,
    size,
    snapshots,
    statistics,
    window,
)
from noonmark.sql.functions.aggregate import Aggregator
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.functions.geometry import table as geometry
from noonmark.sql.functions.jsonpath import functions as jsonpath
from noonmark.sql.functions.number import angle, arithmetic, number_read, numeric
from noonmark.sql.functions.text import (
    ascii,
    binary,
    catalog,
    characters,
    digest,
    encodings,
    quoting,
    regexp,
    unicode,
)
from noonmark.sql.functions.time import calendar, extract, template, template_read, zoned

FUNCTIONS: Table[Function] = Table()
for _module in (
    *(
        arithmetic,
        numeric,
        angle,
        number_read,
        characters,
        regexp,
        unicode,
        quoting,
        binary,
        digest,
        encodings,
        ascii,
        catalog,
        identifier,
    ),
    *(calendar, zoned, extract, template, template_read, array, json, jsonb, document, key),
    *(enums, domain, jsonpath, bits, addresses, log, ranges, size, snapshots, geometry),
):
    FUNCTIONS.add(_module.TABLE)

AGGREGATES: Table[Aggregator] = Table()
AGGREGATES.add(aggregate.TABLE)
AGGREGATES.add(statistics.TABLE)
AGGREGATES.add(coded_aggregates.TABLE)

WINDOWS: Table[Function] = Table()
WINDOWS.add(window.TABLE)

TABLE_FUNCTIONS: Table[Function] = Table()
TABLE_FUNCTIONS.add(rowset.TABLE)
TABLE_FUNCTIONS.add(jsonpath.ROWS)
TABLE_FUNCTIONS.add(ranges.ROWS)
TABLE_FUNCTIONS.add(snapshots.ROWS)
