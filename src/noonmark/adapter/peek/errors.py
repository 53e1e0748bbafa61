"""Errors that are data: what a view holds where it has no answer, as the error of a query."""

from __future__ import annotations

from noonmark import errors
from noonmark.errors import EvaluationError

_KINDS: dict[str, type[EvaluationError]] = {
    kind.sqlstate: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, EvaluationError)
}


def error_of(sqlstate: str, message: str, view: str | None = None) -> EvaluationError:
    """The error that a SQLSTATE and a message were written down of."""
    detail = None if view is None else f'"{view}" has no answer at this time.'
    return _KINDS.get(sqlstate, EvaluationError)(message, detail=detail)
