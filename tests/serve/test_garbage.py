"""The collector's laws, each in a process of its own: its state is the interpreter's."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.alone

_BEGIN = """
import gc, weakref
from noonmark.serve import garbage

class Knot:
    def __init__(self):
        self.me = self

collector = garbage.Collector()
collector.settle()
"""


def _says(text: str) -> str:
    return subprocess.check_output([sys.executable, "-c", _BEGIN + text], text=True).strip()


def test_what_came_and_went_is_found() -> None:
    assert _says("""
knot = Knot()
seen = weakref.ref(knot)
del knot
assert seen() is not None
collector.collect()
print(seen())
""") == ("None")


def test_what_was_alive_is_left_out_until_the_process_is_twice_as_large() -> None:
    assert (
        _says("""
garbage._MANY_BYTES = 0
knot = Knot()
seen = weakref.ref(knot)
collector.collect()
del knot
collector.collect()
print(seen() is None)
more = bytearray(2 * garbage.resident_bytes())
collector.collect()
print(seen() is None)
""")
        == "False\nTrue"
    )


def test_what_is_alive_while_plans_are_made_is_looked_at_again() -> None:
    assert _says("""
knot = Knot()
seen = weakref.ref(knot)
collector.collect(quiet=False)
del knot
collector.collect()
print(seen())
""") == ("None")


def test_a_pause_follows_what_is_new() -> None:
    """All that is alive is large; what came since is small."""
    assert (
        _says("""
import time
alive = [[at] for at in range(2_000_000)]
started = time.perf_counter(); collector.collect(); first = time.perf_counter() - started
collector.collect()  # everything: so much is left out now
started = time.perf_counter(); collector.collect(); second = time.perf_counter() - started
print(second < first / 5)
""")
        == "True"
    )
