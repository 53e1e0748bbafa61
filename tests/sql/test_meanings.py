"""What a function or a cast gives does not change without its edition.

Rows of views are kept, and ticks take away again what earlier ticks computed: they must compute the
same. An edition that is raised has views computed anew (`noonmark.compute.view.view`); one that is
forgotten leaves them wrong. ``meanings.txt`` keeps samples of every entry as this version found it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.sql.cases import REWRITE
from support.sql.meanings import meanings

GOLDEN = Path(__file__).with_name("meanings.txt")


def test_a_meaning_changes_with_its_edition_alone() -> None:
    """NOONMARK_REWRITE=1 writes what is new, and what has another edition; nothing else."""
    found = meanings()
    known = {
        name: (int(edition), digest)
        for name, edition, digest in (
            line.rsplit(" ", 2) for line in GOLDEN.read_text().splitlines()
        )
    }
    forgotten = [
        name
        for name, (edition, digest) in found.items()
        if name in known and digest != known[name][1] and edition <= known[name][0]
    ]
    assert forgotten == [], "they give something else now: raise their editions"
    if REWRITE:
        lines = [f"{name} {edition} {digest}\n" for name, (edition, digest) in found.items()]
        GOLDEN.write_text("".join(sorted(lines)))
    else:
        assert {name: found.get(name) for name in known} == known, "NOONMARK_REWRITE=1 writes them"
        assert found.keys() == known.keys(), "NOONMARK_REWRITE=1 writes them"


def test_every_entry_has_samples() -> None:
    nothing = hashlib.blake2b(b"", digest_size=6).hexdigest()
    assert [name for name, (_, digest) in meanings().items() if digest == nothing] == []
