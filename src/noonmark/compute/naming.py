"""What the collections of a view are called: known without Spark.

A view has `<view>`, its contents; `<view>_errors`, why there is no answer, at times when there is
none; and `<view>_arrangement_<digest>`, what its operators remember.
"""

from __future__ import annotations

VIEW, ERRORS, ARRANGEMENT = "view", "view_errors", "arrangement"


def errors_name(view: str) -> str:
    """The collection of a view's errors."""
    return f"{view}_errors"
