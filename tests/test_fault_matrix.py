"""The matrix of source faults (`docs/sources/faults.md`): every row names tests that exist.

A fault that leaves a reader with an error says how to recover from it.
"""

from __future__ import annotations

import re

from support.house.repository import ROOT

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


def test_every_named_test_exists() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    known = {name for path in files for name in _DEFINED.findall(path.read_text())}
    assert set(_TEST.findall(PAGE.read_text())) - known == set()


def test_every_definite_error_has_a_recovery() -> None:
    text = PAGE.read_text().partition("## Both")[0]
    rows = [[cell.strip() for cell in row.split("|")] for row in _ROW.findall(text)]
    definite = [row for row in rows if "definite" in row[1]]
    assert [row[0] for row in definite if not row[3]] == []
    assert len(definite) >= ROWS_MIN
