"""Planted bugs: every one still has its place in the code, and a few are planted and found.

`make prove ONLY=C10` plants them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.house.planted_bugs import BUGS, QUICK, ROOT, SOURCE, Bug, passes, plant


def test_every_bug_can_be_planted() -> None:
    for bug in BUGS:
        assert bug.text() != (SOURCE / bug.file).read_text()
        compile(bug.text(), bug.file, "exec")
        assert all((ROOT / test).exists() for test in bug.tests if test.startswith("tests/"))
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40


def test_every_rule_has_a_bug() -> None:
    rules = {path.name for path in (SOURCE / "sql" / "rules").glob("*.py")} - {"__init__.py"}
    assert rules == {Path(bug.file).name for bug in BUGS if bug.file.startswith("sql/rules/")}


@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if bug.name in QUICK], ids=lambda bug: bug.name
)
def test_a_planted_bug_is_found(tmp_path: Path, bug: Bug) -> None:
    assert passes(bug.tests)
    assert not passes(bug.tests, plant(bug, tmp_path))
