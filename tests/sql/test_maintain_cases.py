"""How views are maintained, as text: `tests/cases/maintain`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from support.sql.cases import differing
from support.view.maintain_cases import FOLDER, maintained

FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases(path: Path, tmp_path: Path) -> None:
    number = itertools.count()
    wrong = differing(path, lambda sql: maintained(tmp_path / str(next(number)), sql))
    assert wrong == [], "\n\n".join(wrong)


def test_there_are_cases() -> None:
    assert {path.stem for path in FILES} >= {"multiway_joins", "key_pushdown", "split_reductions"}
