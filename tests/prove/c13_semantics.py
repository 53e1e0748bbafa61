"""C13: SQL means what it means in PostgreSQL, asked once and maintained alike.

3,000 generated scalar expressions and 500 generated queries are put to `noonmark serve` and to a
real PostgreSQL over the same protocol; the answers are compared as text (`support.sql.twins`). What
has an answer is then asked of a materialized view of the same text.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import Advance, answer, bar, options
from support.sql.generator import Generator
from support.sql.scalars import TABLE, Scalars
from support.sql.twins import IN_ONE_VIEW, Twins, twins

QUERIES_PER_SCALAR = 1 / 6


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 3000, "scalar expressions; a sixth as many queries")
    queries = round(chosen.count * QUERIES_PER_SCALAR)
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        total = 2 * (chosen.count + queries)
        with twins(Path(folder)) as both, bar("statements", total) as advance:
            wrong = scalars(both, chosen.seed, chosen.count, kinds, advance)
            wrong += asked(both, chosen.seed, queries, kinds, advance)
    goal = f"0 in {chosen.count} scalars and {queries} queries, as SELECT and as views"
    return answer("SQL against PostgreSQL", goal, wrong, dict(kinds))


def scalars(both: Twins, seed: int, count: int, kinds: Counter[str], advance: Advance) -> list[str]:
    """Scalars over one row, each by itself and then many to a view."""
    both.make_scalars()
    generator, wrong, fine = Scalars(seed), [], []
    for _ in range(count):
        text, kind = generator.next()
        found = both.difference(f"select {text} from {TABLE}")
        kinds[kind] += 1
        if found is not None:
            wrong.append(found)
        elif both.has_answer(f"select {text} from {TABLE}"):
            fine.append(text)
        advance()
    for at in range(0, len(fine), IN_ONE_VIEW):
        some = fine[at : at + IN_ONE_VIEW]
        items = ", ".join(f"{text} as c{n}" for n, text in enumerate(some))
        wrong += both.view_difference([f"select {items} from {TABLE}"])
        advance(len(some))
    advance(count - len(fine))
    return wrong


def asked(both: Twins, seed: int, count: int, kinds: Counter[str], advance: Advance) -> list[str]:
    """Queries over small tables, each by itself and then as a view."""
    both.make_tables()
    generator, wrong = Generator(seed), []
    for _ in range(count):
        text, columns = generator.query(2, [])
        names = ", ".join(f"c{at}" for at in range(len(columns)))
        sql = f"select * from ({text}) as answer({names})"
        found = both.difference(sql)
        kinds["query"] += 1
        advance()
        if found is not None:
            wrong.append(found)
        elif both.has_answer(sql):
            wrong += both.view_difference([sql])
        advance()
    return wrong


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
