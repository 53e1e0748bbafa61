"""Sources: where records come from, how bytes become rows, and how records become updates.

`contract` says what a source is; `impl` has the sources; `format` decodes raw records; `envelope`
turns decoded records into updates; `spark` runs all of it on executors.
"""

from noonmark.source.contract import (
    ERRORS_SCHEMA,
    START,
    Frontier,
    Output,
    Source,
    Split,
    record_schema,
)

__all__ = [
    "ERRORS_SCHEMA",
    "START",
    "Frontier",
    "Output",
    "Source",
    "Split",
    "record_schema",
]
