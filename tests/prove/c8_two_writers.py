"""C8: two writers on one location, 8 workloads of 3,000 operations by default.

Opening and closing in a race, takeover by reentrance id, from the dead, from the stopped that come
back, by a lease that ran out, by clocks that disagree: nothing of the loser is committed after the
takeover, nothing of the winner is lost, the loser is told who has the lock.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, bar, options
from support.kill.clocks_apart import run_in_memory
from support.kill.two_writers import WORKLOADS, Book, run_processes
from support.store.history import Violation

IN_MEMORY = "memory, clocks apart"


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 3_000, "operations of each workload")
    violations: list[str] = []
    faults: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    names = [*WORKLOADS, IN_MEMORY]
    with bar("operations", len(names) * chosen.count) as advance:
        for name in names:
            book, before = Book(), 0
            try:
                for now in _rounds(name, chosen.seed, chosen.count, book):
                    advance(min(now, chosen.count) - before)
                    before = min(now, chosen.count)
            except Violation as violation:
                violations.append(f"{name}, seed {chosen.seed}: {violation}")
            faults += book.faults
            answers += Counter(book.answers.values())
    note = ", ".join(f"{count} {what}" for what, count in answers.most_common())
    goal = f"0 in {len(names)} workloads of {chosen.count} operations"
    return answer("two writers", goal, violations, faults, note)


def _rounds(name: str, seed: int, count: int, book: Book) -> Iterator[int]:
    if name == IN_MEMORY:
        yield from run_in_memory(seed, count, book)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield from run_processes(name, Path(folder) / "data", seed, count, book)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
