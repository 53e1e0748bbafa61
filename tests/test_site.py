"""The documents as a site: every page has its place, and the built pages ask nothing of others.

What stands in `mkdocs.yml` is read as text here, so that most of this needs no mkdocs; one test
builds the site in an environment of its own, as `make docs` does.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.house.repository import ROOT, tracked
from support.neighbour.tool_venv import run_tool, tool_python

DOCS = ROOT / "docs"
#: Pages of the site that are not below `docs/`: docs/tools/site_hooks.py takes them along.
TAKEN = {"CONTRIBUTING.md", "CHANGELOG.md", "dbt-noonmark/README.md"}
_LINK = re.compile(r"\]\(([^)\s#]+)[^)\s]*\)")

_spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "tools" / "site_hooks.py")
assert _spec is not None
assert _spec.loader is not None
hooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hooks)


def navigation() -> list[str]:
    """The pages of the navigation, in its order."""
    listed = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    return re.findall(r"^ +- (?:.*: )?(\S+\.md)$", listed, re.MULTILINE)


def pages() -> set[str]:
    below = [path for path in tracked() if path.suffix == ".md" and path.is_relative_to(DOCS)]
    return {path.relative_to(DOCS).as_posix() for path in below}


def test_words_lead_to_the_glossary() -> None:
    terms = hooks.glossary_links.terms_of("### Tick\n\n### Lease, hold\n\n### Delta query\n")
    assert terms == {"tick": "tick", "delta query": "delta-query"}
    text = "A `tick`, [a tick](x.md): two ticks.\n\n    tick\n\nA tick; a Delta query."
    assert hooks.glossary_links.linked(text, "sql/audit.md", terms) == (
        "A `tick`, [a tick](x.md): two [ticks](../glossary.md#tick).\n\n    tick\n\n"
        "A tick; a [Delta query](../glossary.md#delta-query)."
    )


def test_files_that_pages_name_are_there() -> None:
    """A page about the code names files by the end of their path; decisions are of their day."""
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in tracked()]
    for page in sorted(pages()):
        if page.startswith("design/"):
            continue
        named = re.findall(r"`([a-z][\w./-]+\.(?:py|toml|yml|json|js))`", (DOCS / page).read_text())
        gone = {name for name in named if not any(path.endswith(f"/{name}") for path in known)}
        assert gone == set(), page


def test_every_page_has_one_place() -> None:
    counted = Counter(navigation())
    assert {name: count for name, count in counted.items() if count > 1} == {}
    assert pages() - set(counted) == set(), "pages that nobody finds"
    assert set(counted) - pages() == TAKEN, "places without a page"


def test_the_index_leads_to_every_page() -> None:
    """For those who read in the repository; pages of SQL and of extending have indexes below."""
    found = set()
    for index in ("README.md", "sql/README.md", "extend/README.md"):
        links = _LINK.findall((DOCS / index).read_text())
        found |= {posixpath.normpath(posixpath.join(posixpath.dirname(index), x)) for x in links}
    assert pages() - found - {"README.md"} == set()


def test_links_lead_to_the_same_file_on_the_site() -> None:
    moved = {
        ("README.md", "../CHANGELOG.md"): "CHANGELOG.md",
        ("README.md", "operate/http.md"): "operate/http.md",
        ("operate/deploy.md", "../../deploy/noonmark.toml"): "../deploy/noonmark.toml",
        ("operate/deploy.md", "security.md#the-log"): "security.md#the-log",
        ("CHANGELOG.md", "docs/operate/http.md"): "operate/http.md",
        ("CONTRIBUTING.md", "https://example.org/a.md"): "https://example.org/a.md",
    }
    for (page, link), wanted in moved.items():
        assert hooks.relinked(f"[a]({link})", page) == f"[a]({wanted})"


class Loaded(HTMLParser):
    """What a page loads by itself: not the links that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.policies: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])
        if tag != "a":
            named = (given.get(name, "") for name in ("src", "href", "srcset", "data", "poster"))
            self.found += [each for each in named if re.match(r"\s*(https?:)?//", each)]
        self.found += re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*", given.get("style", ""))


@pytest.mark.slow
def test_the_site_asks_nothing_of_another_host(tmp_path: Path) -> None:
    python = tool_python("site", DOCS / "requirements.lock")
    target = tmp_path / "site"
    build = ("mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target))
    run_tool(python, "-m", *build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    built = {path.relative_to(target).as_posix(): path for path in target.rglob("*.html")}
    assert len(built) >= len(navigation())
    for name, path in built.items():
        page = Loaded()
        page.feed(path.read_text())
        assert page.found == [], name
        assert [policy.startswith("default-src 'self';") for policy in page.policies] == [True]
    for path in target.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", path.read_text()) == []
