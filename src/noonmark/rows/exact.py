"""Which types are stored so that equal values have equal bytes, and which can be put in order."""

from noonmark.rows import types as t

_EXACT = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Text, t.Varchar, t.Bytea,
    t.Date, t.Time, t.Timestamp, t.TimestampTz, t.Uuid, t.Json,
    t.Enum,
)  # fmt: skip
FLOATS = (t.Real, t.Double)


def is_exact(kind: t.SqlType) -> bool:
    """Whether stored values are the same iff they are equal in SQL, and in the order of Spark."""
    if isinstance(kind, t.Coded):
        return kind.one_form
    return isinstance(kind, _EXACT) and not t.is_plain(kind)


def is_ordered(kind: t.SqlType) -> bool:
    """Whether values can be put in order all at once, as SQL and as Spark do."""
    return is_exact(kind) or isinstance(kind, FLOATS)


def has_extremes(kind: t.SqlType) -> bool:
    """Whether the least and the greatest of the stored values are those of SQL.

    Of equal numerics the one with fewer digits after the point is the less.
    """
    return is_ordered(kind) or t.is_plain(kind) or isinstance(kind, t.Coded)
