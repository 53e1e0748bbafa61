"""Words of the glossary in the pages of the site: the first use on a page leads to its meaning.

Law: no page of the site uses a word of the glossary in its text without a link to it. The first
occurrence in plain text is the link; code, headings and what is a link already stay as they are.
Words that are also plain English (time, source, part, since, hold, ...) are left out: they would
make every page blue.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import groupby

_HEADING = re.compile(r"^### (.+)$", re.MULTILINE)
#: Also words of everybody, or of SQL.
PLAIN = {
    "time", "timestamp", "update", "source", "log", "entry", "commit", "part", "since", "hold",
    "audit", "history", "strategy", "driver", "sink", "upper", "offset", "location", "collection",
    "persist", "write frontier", "read frontier", "lease", "capability", "peek",
}  # fmt: skip
_KEPT = re.compile(r"(!?\[[^\]]*\]\([^)]*\)|`[^`]*`|<[^>]+>)")


def terms_of(glossary: str) -> dict[str, str]:
    """Every word of the glossary with its anchor."""
    found = {}
    for heading in _HEADING.findall(glossary):
        anchor = re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for word in re.split(r", or |, ", heading.lower()):
            if word not in PLAIN:
                found[word] = anchor
    return found


def linked(markdown: str, page: str, terms: Mapping[str, str]) -> str:
    """The text of a page with the first use of every term as a link."""
    glossary = posixpath.relpath("glossary.md", posixpath.dirname(page) or ".")
    left = dict(terms)
    blocks = []
    # A block of text is taken whole: a link may begin on one line and end on the next.
    for plain, lines in groupby(_lines(markdown), key=lambda each: each[1]):
        block = "\n".join(line for line, _ in lines)
        blocks.append(_block(block, glossary, left) if plain else block)
    return "\n".join(blocks)


def _lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """The lines, and whether each is text."""
    fenced = False
    for line in markdown.split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        yield line, not (fenced or fence or line.startswith(("    ", "#", "<!--")))


def _block(text: str, glossary: str, left: dict[str, str]) -> str:
    pieces = _KEPT.split(text)
    pieces[::2] = [_piece(piece, glossary, left) for piece in pieces[::2]]
    return "".join(pieces)


def _piece(text: str, glossary: str, left: dict[str, str]) -> str:
    """Text without links: the longest terms first, each once a page."""
    words = "|".join(re.escape(word) for word in sorted(left, key=len, reverse=True))
    found = re.search(rf"\b({words})(s?)\b", text, re.IGNORECASE) if words else None
    if found is None:
        return text
    anchor = left.pop(found[1].lower())
    link = f"[{found[0]}]({glossary}#{anchor})"
    return text[: found.start()] + link + _piece(text[found.end() :], glossary, left)
