"""What the collections of a view are called: known without Spark.

A view has `<view>`, its contents; and `<view>_errors`, why there is no answer, at times when there
is none. What its operators remember is in `arrangement_<digest>`, which views share that remember
the same, or in `<view>_arrangement_<digest>`, which is its own.

Law: two holds have one name only if they are of one view on one collection, whatever either is
called. A slash in the name of a view is therefore not written as it is.
"""

from __future__ import annotations

VIEW, ERRORS, ARRANGEMENT = "view", "view_errors", "arrangement"
#: What the holds of views are called begins so.
HOLD = "view/"


def errors_name(view: str) -> str:
    """The collection of a view's errors."""
    return f"{view}_errors"


def hold_id(view: str, name: str) -> str:
    """The hold of a view on a collection that it reads.

    >>> hold_id("a", "b/c"), hold_id("a/b", "c")
    ('view/a/b/c', 'view/a%2Fb/c')
    """
    return f"{HOLD}{view.replace('%', '%25').replace('/', '%2F')}/{name}"


def former_hold_id(view: str, name: str) -> str:
    """What such a hold was called once: the same, unless there is a slash or a percent sign."""
    return f"{HOLD}{view}/{name}"


def arrangement_name(digest: str, view: str = "") -> str:
    """The arrangement for a spec, of all views that have it or of one."""
    return f"{view}_arrangement_{digest}" if view else f"arrangement_{digest}"
