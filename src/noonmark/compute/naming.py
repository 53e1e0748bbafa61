"""What the collections of a view are called: known without Spark.

A view has `<view>`, its contents; and `<view>_errors`, why there is no answer, at times when there
is none. What its operators remember is in `arrangement_<digest>`, which views share that remember
the same, or in `<view>_arrangement_<digest>`, which is its own.
"""

from __future__ import annotations

VIEW, ERRORS, ARRANGEMENT = "view", "view_errors", "arrangement"
#: What the holds of views are called begins so.
HOLD = "view/"


def errors_name(view: str) -> str:
    """The collection of a view's errors."""
    return f"{view}_errors"


def hold_id(view: str, name: str) -> str:
    """The hold of a view on a collection that it reads."""
    return f"{HOLD}{view}/{name}"


def arrangement_name(digest: str, view: str = "") -> str:
    """The arrangement for a need, of all views that have it or of one."""
    return f"{view}_arrangement_{digest}" if view else f"arrangement_{digest}"
