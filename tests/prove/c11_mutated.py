"""C11, typed badly: 200,000 statements that are nearly right, none of which is an internal error.

The statements of the documents and of the cases, with words and values exchanged, left out, said
twice, or taken from another one (`support.hostile.mutated`), go to a server. A violation is an
internal error, a relation that is damaged, a connection that ends.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.hostile.mutated_run import MutatedRun
from support.house.proving import answer, bar, options
from support.serve.process import serving

#: A server is told so many, then the next one starts: what was made by then makes it slow.
_EACH = 20_000


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 200_000, "statements")
    violations: list[str] = []
    counts: dict[str, int] = {}
    with bar("statements", chosen.count) as advance:
        for first in range(0, chosen.count, _EACH):
            with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
                dsn = f"host=127.0.0.1 port={server.pg} user=me dbname=noonmark"
                run = MutatedRun(dsn, chosen.seed * 1_000_000 + first)
                run.run(min(_EACH, chosen.count - first), advance)
            violations += run.violations
            for state, count in run.counts.items():
                counts[state] = counts.get(state, 0) + count
    goal = f"0 in {chosen.count} statements"
    return answer("statements that are nearly right", goal, violations, counts)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
