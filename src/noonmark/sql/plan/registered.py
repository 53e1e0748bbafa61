"""``regclass`` and its kin: the number of an object inside of a query, its name where text is."""

from __future__ import annotations

from noonmark.rows import types as t
from noonmark.sql.choose import resolve
from noonmark.sql.ir.asked import Ask
from noonmark.sql.ir.scalar import Scalar
from noonmark.sql.plan.row import Statement

#: Types that are the oid of something by its name.
REGISTERED = (
    "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regcollation",
)  # fmt: skip


def name_of_number(scalar: Scalar, statement: Statement) -> Scalar:
    """The name of an object, where the scalar is its number; else the scalar."""
    kind = scalar.type
    if statement.session is None or not isinstance(kind, t.Integer) or kind.told not in REGISTERED:
        return scalar
    entry, arguments = resolve(statement.session, kind.told, [scalar])
    return Ask(entry.id, arguments, entry)
