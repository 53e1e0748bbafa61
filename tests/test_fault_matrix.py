"""Every row of the matrix of source faults (`docs/sources/faults.md`) names a test that exists."""

from __future__ import annotations

import re

from support.repository import ROOT

PAGE = ROOT / "docs" / "sources" / "faults.md"
ROWS_MIN = 20
_ROW = re.compile(r"^\| (?!fault|---)(.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(test_\w+)`")
_DEFINED = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def test_every_fault_is_shown_by_a_test() -> None:
    rows = [row for row in _ROW.findall(PAGE.read_text()) if not set(row) <= set("-|")]
    files = (ROOT / "tests").rglob("test_*.py")
    known = {name for path in files for name in _DEFINED.findall(path.read_text())}
    unshown = [row for row in rows if not set(_TEST.findall(row)) & known]
    assert unshown == []
    assert len(rows) >= ROWS_MIN
