"""The examples of `docs/sql` run, and the first hour: each page on a database, from top to bottom.

A block of SQL is run; a block of text behind it is what it gives, with ``...`` for what differs
from run to run. ``NOONMARK_REWRITE=1`` writes what is given now into the pages, for review.
A page that says ``<!-- needs Spark -->`` gets a Spark session.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from support.serve.reading import connect, database
from support.sql.cases import FOLDER, REWRITE
from support.sql.statement_text import ran

DOCS = FOLDER.parents[2] / "docs"
PAGES = sorted((DOCS / "sql").glob("*.md"))
_BLOCK = re.compile(r"```sql\n(?P<sql>.*?)```\n(?:\n?```text\n(?P<text>.*?)```\n)?", re.DOTALL)
_SPARK = "<!-- needs Spark -->"
NEEDY = [page for page in [*PAGES, DOCS / "first-hour.md"] if _SPARK in page.read_text()]
PLAIN = [page for page in PAGES if page not in NEEDY]


def fits(expected: str, given: str) -> bool:
    """Whether the output is the expected one; ``...`` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip("\n").split("..."))
    return re.fullmatch(pattern, given.strip("\n"), re.DOTALL) is not None


async def check(page: Path, spark: Any, folder: Path) -> None:
    text = page.read_text()
    wrong: list[str] = []
    async with asyncio.timeout(240), database(str(folder / "location"), spark) as opened:
        session = (await connect(opened)).session

        async def replaced(match: re.Match[str]) -> str:
            given = await ran(session, match["sql"].replace("$FOLDER", str(folder)))
            expected = match["text"]
            failed = given.rpartition("\n")[2].startswith("error") and expected is None
            if failed or (expected is not None and not fits(expected, given)):
                wrong.append(f"{match['sql']}gives\n{given}")
            if expected is None or fits(expected, given):
                return match[0]
            return f"```sql\n{match['sql']}```\n\n```text\n{given}\n```\n"

        pieces, last = [], 0
        for match in _BLOCK.finditer(text):
            pieces += [text[last : match.start()], await replaced(match)]
            last = match.end()
    if REWRITE:
        page.write_text("".join([*pieces, text[last:]]))
    else:
        assert wrong == [], f"{page.name}:\n\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.stem)
def test_examples(page: Path, tmp_path: Path) -> None:
    asyncio.run(check(page, None, tmp_path))


@pytest.mark.spark
@pytest.mark.parametrize("page", NEEDY, ids=lambda page: page.stem)
def test_examples_with_spark(page: Path, tmp_path: Path, spark: Any) -> None:
    asyncio.run(check(page, spark, tmp_path))


def test_every_statement_has_a_page() -> None:
    """What a reader looks for by name is in the index, and every page is."""
    index = (PAGES[0].parent / "README.md").read_text()
    missing = [page.name for page in PAGES if page.name != "README.md" and page.name not in index]
    assert missing == []
