"""Rows in Arrow: the front door.

`arrow_type` and `arrow_schema` say how SQL types are stored (`noonmark.rows.storage`); `to_array`,
`from_array`, `to_table` and `from_table` take Python values in and out (`noonmark.rows.array`);
`conform` takes any table that others made (`noonmark.rows.conform`); `texts_for_numerals` is for
others that read ours (`noonmark.rows.shown`).
"""

from noonmark.rows.array import from_array, from_table, stored, to_array, to_table
from noonmark.rows.conform import conform
from noonmark.rows.shown import texts_for_numerals
from noonmark.rows.storage import arrow_schema, arrow_type

__all__ = [
    "arrow_schema",
    "arrow_type",
    "conform",
    "from_array",
    "from_table",
    "stored",
    "texts_for_numerals",
    "to_array",
    "to_table",
]
