"""The faster forms of scalar functions, by the id of the function.

Law: every form is the same function as the meaning of that id (`noonmark.sql.functions`).
`tests/conformance/test_scalars.py` and `test_scalars_on_spark.py` ask every form of this table.

A function without an entry is asked of its meaning, row by row, in every engine. A faster form is
one entry in `arithmetic`, `text` or `time`; nothing else has to change.
"""

from __future__ import annotations

from noonmark.compute.scalar import arithmetic, text, time
from noonmark.compute.scalar.forms import Forms
from noonmark.rows import types as t
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.ir.scalar import Call

FORMS: dict[str, Forms] = {**arithmetic.TABLE, **text.TABLE, **time.TABLE}
assert FORMS.keys() <= FUNCTIONS.by_id.keys(), "a form of a function that has no meaning"


def forms(function: str) -> Forms:
    """The forms of a function; none of them, if it has its meaning alone."""
    return FORMS.get(function, _MEANING_ALONE)


_MEANING_ALONE = Forms()


def has_spark_form(call: Call) -> bool:
    """Whether Spark computes the call as it is meant, with arguments of these types."""
    found = forms(call.function)
    if found.spark is None or any(t.is_plain(x.type) for x in (call, *call.arguments)):
        return False
    return found.spark_if(call)
