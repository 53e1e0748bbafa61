"""C19: the laws that ``make test`` tries on few generated cases, each on many.

Every file of tests that says two counts (`support.house.counts`) runs with the larger one: the same
generators and the same judges, ten to fifty times as many histories, values and rows. A test that
fails is a violation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove.c9_source_faults import TESTS, Outcomes
from support.house.counts import MANY, counting_files
from support.house.proving import answer, options


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 1, "runs")
    os.environ[MANY] = str(chosen.seed)
    outcomes = Outcomes()
    files = [str(path) for path in counting_files()]
    # Properties draw by the seed; a file's own histories are the first ones, and more of them.
    asked = ["-q", f"--hypothesis-seed={chosen.seed}", "-o", "timeout=7200"]
    status = pytest.main([*asked, "--rootdir", str(TESTS.parent), *files], [outcomes])
    if status not in (0, 1):
        outcomes.failed.append(f"pytest ended with status {int(status)}")
    goal = f"0 in {len(files)} files of tests"
    found = answer("laws on many generated cases", goal, outcomes.failed, outcomes.passed)
    return {**found, "met": found["met"] and len(outcomes.passed) == len(files)}


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
