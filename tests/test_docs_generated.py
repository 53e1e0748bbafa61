"""The pages that are made from the code are what the code says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from noonmark import errors
from noonmark.contents import Contents
from noonmark.embedded.answer import Answer
from noonmark.embedded.database import Embedded
from noonmark.serve.command import DEFAULTS
from support.house.error_advice import ADVICE, GROUPS
from support.house.generated_docs import PAGES, kinds
from support.house.repository import ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == PAGES[page](), (
        f"{page.relative_to(ROOT)} is out of date: run python tests/support/house/generated_docs.py"
    )


def test_errors_are_read_as_python_has_them() -> None:
    found = kinds()
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.NoonmarkError):
            if kind is errors.NoonmarkError:
                continue
            assert (found[kind.__name__].id, found[kind.__name__].sqlstate) == (
                kind.id,
                kind.sqlstate,
            )


def test_advice_is_for_errors_that_exist() -> None:
    found = kinds().values()
    assert set(ADVICE) - {kind.id for kind in found} == set()
    assert {kind.id for kind in found if kind.parent == "NoonmarkError"} == set(GROUPS)


def test_every_key_of_the_file_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    assert [key for key in DEFAULTS if f"`{key}`" not in page] == []


def test_what_python_has_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    for prefix, kind in (("db", Embedded), ("answer", Answer), ("contents", Contents)):
        public = [
            name for name in vars(kind) if not name.startswith("_") and callable(vars(kind)[name])
        ]
        assert [name for name in public if f"{prefix}.{name}(" not in page] == []


@pytest.mark.parametrize("page", ["life-of-a-row.md", "life-of-a-query.md"])
def test_the_files_of_a_path_exist(page: str) -> None:
    """They are traced in a real run (`support.house.life`); a file that moved is traced again."""
    text = (ROOT / "docs" / page).read_text()
    rows = re.findall(r"^\| (?:`(.*)`)? \| `(.*)` \| `.*` \|$", text, re.M)
    folder, missing = "", []
    for named, file in rows:
        folder = named or folder
        if not (ROOT / "src" / "noonmark" / folder / file).exists():
            missing.append(f"{folder}/{file}")
    assert len(rows) > 20
    assert missing == [], "run python tests/support/house/life.py"
