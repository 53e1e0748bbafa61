"""How much a test generates: few cases in ``make test``, many in ``make prove``.

A law that is tried on a thousand generated histories is no other law than one that is tried on a
hundred. A test that is quick because it tries few says both numbers, `counted(100, 1_000)`: the
first is what ``make test`` tries at every change, the second what C19 (`prove/c19_many_cases.py`)
tries, by the same generator and the same judge. Properties that say no number of their own draw as
many examples as `tests/property/conftest.py` says in that way. C19 runs every file that asks this
module, and every file of properties, so no count is lowered without its long run.
"""

from __future__ import annotations

import os
from pathlib import Path

from support.house.repository import imports, python_files

#: Set by C19, to the seed of its run.
MANY = "NOONMARK_MANY_CASES"


def counted(few: int, many: int) -> int:
    """`few`, and `many` in C19."""
    if not 0 < few < many:
        raise ValueError(f"{many} cases are no more than {few}")
    return many if MANY in os.environ else few


def counting_files() -> list[Path]:
    """The files of tests that try more cases in C19."""
    found = [path for path in python_files("tests") if path.name.startswith("test_")]
    return [path for path in found if __name__ in imports(path) or _draws(path)]


def _draws(path: Path) -> bool:
    return path.parent.name == "property" and "hypothesis.given" in imports(path)
