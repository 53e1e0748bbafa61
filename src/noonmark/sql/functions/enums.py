"""What an enum tells of its labels: the first, the last, those between two.

The labels are those of the argument's type, whatever its value is: so a plan that has such a call
depends on them, and the type gets no label while a maintained view does.
"""

from __future__ import annotations

from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.label import Label
from noonmark.sql.functions.function import Function

Types = tuple[t.SqlType, ...]


class NoLabels(EvaluationError, id="no_labels", sqlstate="55000"):
    """The first or the last label of a type that has none."""


def _labels(types: Types) -> tuple[Label, ...]:
    kind = types[0]
    assert isinstance(kind, t.Enum)
    return kind.labels


def _some(types: Types) -> tuple[Label, ...]:
    labels = _labels(types)
    if not labels:
        raise NoLabels(f"enum {types[0]} contains no values")
    return labels


def _first(types: Types, _: Label | None) -> Label:
    return _some(types)[0]


def _last(types: Types, _: Label | None) -> Label:
    return _some(types)[-1]


def _all(types: Types, _: Label | None) -> tuple[Label, ...]:
    return _labels(types)


def _between(types: Types, low: Label | None, high: Label | None) -> tuple[Label, ...]:
    """Both ends count; NULL is the end of all."""
    return tuple(
        each
        for each in _labels(types)
        if (low is None or low.place <= each.place) and (high is None or each.place <= high.place)
    )


def _same(types: Types) -> t.SqlType:
    return types[0]


def _array(types: Types) -> t.SqlType:
    return t.Array(types[0])


_E = t.Enum

TABLE = (
    Function("enum_first", (_E,), _same, _first, strict=False, fallible=True, typed=True),
    Function("enum_last", (_E,), _same, _last, strict=False, fallible=True, typed=True),
    Function("enum_range", (_E,), _array, _all, strict=False, typed=True),
    Function("enum_range", (_E, _E), _array, _between, strict=False, typed=True),
)
