"""Plans and refusals as text: `tests/cases/sql`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sql import queries as sql_queries
from support.sql.cases import FOLDER, differing, outcome
from support.view import tpch

FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases(path: Path) -> None:
    schemas = tpch.SCHEMAS if path.stem.startswith("tpch") else sql_queries.SCHEMAS
    as_written = path.stem.startswith("plan")
    wrong = differing(path, lambda sql: outcome(sql, schemas, rules=not as_written))
    assert wrong == [], "\n\n".join(wrong)


def test_every_tpch_query_is_a_case() -> None:
    text = (FOLDER / "tpch.txt").read_text()
    assert [name for name, sql in tpch.QUERIES.items() if sql.strip() not in text] == []
