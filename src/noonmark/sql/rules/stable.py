"""What PostgreSQL computes for each statement anew, because it may depend on the session.

It does not know such a value while it plans: neither that it is NULL, and so asks for the other
arguments of a strict function of it, nor that it fails. Here nothing depends on the session (the
time zone is UTC), so that the values are known; but what is asked, and fails, must be the same.
"""

from __future__ import annotations

from noonmark.rows import types as t
from noonmark.sql.functions.function import Function
from noonmark.sql.ir import scalar as s

_TEXTS = (t.Text, t.Varchar, t.Char)
_NAMES = frozenset(
    ("to_char", "to_jsonb", "jsonb_build_object", "jsonb_build_array", "format", "concat",
     "concat_ws", "array_to_string", "convert_from", "convert_to", "make_timestamptz")
)  # fmt: skip
_BY_TEMPLATE = ("to_date", "to_timestamp")
#: Stable where they are of an instant, which the session's zone shows.
_OF_INSTANTS = frozenset(("+", "-", "date_part", "date_trunc", "date_add", "date_subtract"))
#: Read by their own rules, and written by those of the session.
_READ = (t.Date, t.Time, t.Timestamp, t.TimestampTz, t.Interval, t.Array, t.Record)
_WRITTEN = (t.Date, t.Timestamp, t.TimestampTz, t.Interval, t.Array, t.Record)
_DAYS = (t.Date, t.Time, t.Timestamp)


def is_stable(scalar: s.Scalar) -> bool:
    """Whether PostgreSQL leaves this node, its parts aside, to the run."""
    match scalar:
        case s.Call():
            return _is_stable_call(scalar.entry)
        case s.Cast(type=target, operand=operand):
            return _is_stable_cast(operand.type, target)
    return False


def _is_stable_call(entry: Function) -> bool:
    by_template = entry.name in _BY_TEMPLATE and entry.parameters == (t.Text, t.Text)
    if entry.name in _NAMES or by_template:
        return True
    named = entry.name in _OF_INSTANTS or entry.name.startswith("extract ")
    if not named or t.TimestampTz not in entry.parameters:
        return entry.name == "overlaps" and {t.TimestampTz, t.Interval} <= set(entry.parameters)
    # The difference of two instants is the same for every session; so is what names its zone.
    return entry.parameters not in _FIXED


_FIXED = (
    (t.TimestampTz, t.TimestampTz),
    (t.Text, t.TimestampTz, t.Text),
    (t.TimestampTz, t.Interval, t.Text),
)


def _is_stable_cast(source: t.SqlType, target: t.SqlType) -> bool:
    if isinstance(source, _TEXTS):
        return isinstance(target, _READ) or _is_range(target)
    if isinstance(target, _TEXTS):
        return isinstance(source, _WRITTEN) or _is_range(source)
    pair = (source, target)
    return any(isinstance(each, t.TimestampTz) for each in pair) and any(
        isinstance(each, _DAYS) for each in pair
    )


def _is_range(kind: t.SqlType) -> bool:
    return isinstance(kind, t.Coded) and kind.category == "R"
