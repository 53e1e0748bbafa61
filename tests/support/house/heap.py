"""What was collected is no garbage: the collector does not look at it again and again.

All tests together, with what they import, are a million objects and more, and to look at them takes
a second. A test that has Python look for garbage, because it counts what is left or measures time,
would pay for all other tests.
"""

from __future__ import annotations

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave out what is there before the first test runs."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What ends with the interpreter is found by it."""
    gc.unfreeze()
