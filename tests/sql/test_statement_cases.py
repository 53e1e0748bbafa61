"""Statements as text: `tests/cases/statement`, what is read, and what is refused and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sql.cases import FOLDER, differing
from support.sql.statement_text import parsed

FILES = sorted((FOLDER.parent / "statement").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases(path: Path) -> None:
    wrong = differing(path, parsed)
    assert wrong == [], "\n\n".join(wrong)
