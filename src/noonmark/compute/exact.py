"""Which types are stored so that equal values have equal bytes, and which can be put in order."""

from noonmark.rows import types as t

#: Types whose stored values are the same iff they are equal in SQL, and whose order is Spark's.
EXACT = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Text, t.Varchar, t.Bytea,
    t.Date, t.Time, t.Timestamp, t.TimestampTz, t.Uuid,
)  # fmt: skip
FLOATS = (t.Real, t.Double)
#: Types whose values can be put in order all at once, as SQL and as Spark do.
ORDERED = (*EXACT, *FLOATS)
