"""What the site takes from outside of `docs/`, and links that only the site has.

Law: a link in a document means the same file on the site as in the repository. Pages are written
for the repository, where `docs/` is a folder; on the site it is the root. So every relative link is
resolved in the repository and written anew; one that leads to a file which the site does not have
stays as it is, and the strict build refuses it.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads a hook as a file of its own

import glossary_links

ROOT = Path(__file__).resolve().parents[2]
#: What is taken along, as it is called in the repository and on the site.
TAKEN = ("CONTRIBUTING.md", "CHANGELOG.md", "deploy", "dbt-noonmark/README.md")

_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, *, config: Any) -> Files:
    """Add what is taken along to the files of the site."""
    from mkdocs.structure.files import File  # only who builds has it

    for name in TAKEN:
        top = ROOT / name
        found = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for path in found:
            place = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links lead to where the site has their files, and words to the glossary."""
    place = page.file.src_uri
    if place in ("glossary.md", "CHANGELOG.md"):
        return relinked(markdown, place)
    terms = glossary_links.terms_of((ROOT / "docs" / "glossary.md").read_text())
    return glossary_links.linked(relinked(markdown, place), place, terms)


def relinked(markdown: str, page: str) -> str:
    """The text of `page`, a place on the site, with the links of the repository as the site's."""
    here = repository_path(page)

    def replaced(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if "://" in target or target.startswith(("mailto:", "/")):
            return match[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        place = posixpath.relpath(site_path(meant), posixpath.dirname(page) or ".")
        return place + anchor

    return _LINK.sub(replaced, markdown)


def repository_path(place: str) -> str:
    """Where the repository has what the site has at `place`."""
    return place if place.startswith(TAKEN) else f"docs/{place}"


def site_path(path: str) -> str:
    """Where the site has what the repository has at `path`."""
    return path.removeprefix("docs/")
