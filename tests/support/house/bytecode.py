"""What Python compiled it keeps, for this process and for all that tests start.

An environment in which Python writes no bytecode (``PYTHONDONTWRITEBYTECODE``, which images of
containers like to set) has every process compile what it imports: a server, a statement worker's
zygote, a process of a tick, Spark's Python workers. Of a server's start that is two thirds.
"""

from __future__ import annotations

import os
import sys

import pytest

_VARIABLE = "PYTHONDONTWRITEBYTECODE"


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Before tests are imported: what pytest makes of them is kept, too."""
    os.environ.pop(_VARIABLE, None)
    sys.dont_write_bytecode = False
