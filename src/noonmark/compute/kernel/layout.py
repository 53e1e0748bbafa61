"""Updates of a relation in one layout: what frames of Spark and tasks of ticks exchange.

    c0, c1, ...   the columns of the relation, by position
    _error        NULL; or, for an update of the relation's errors, its SQLSTATE and message
    _time         when; only in frames of changes
    _diff         how many more

Law (errors beside rows): a table in this layout holds two collections. Its rows are the updates
without `_error`; its errors are the others, whose columns mean nothing. A relation has an answer at
a time iff its errors are empty at that time. Errors pass through every operator unchanged, and
every operator is linear in them: what put an error there, taken away, takes the error away.
"""

from __future__ import annotations

import pyarrow as pa

from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import arrow_type
from noonmark.rows.schema import Schema

ERROR = "_error"


def layout_schema(schema: Schema, *, timed: bool) -> pa.Schema:
    """The Arrow schema of the updates of a relation."""
    fields = [(f"c{at}", arrow_type(c.type)) for at, c in enumerate(schema)]
    times = [(TIME, pa.int64())] if timed else []
    return pa.schema([*fields, (ERROR, pa.string()), *times, (DIFF, pa.int64())])
