"""C14: whatever SQL is asked, Noonmark says what PostgreSQL says, once and as a view that follows.

Random expressions and queries over random tables (every type, NULLs, keys, hostile literals) go to
`noonmark serve` and to a real PostgreSQL by the same client; names, types, text and SQLSTATE are
compared as they come (`support.sql.any.versus` says what is set apart, and why). Views of such
queries are read after each of ten rounds of changes, and compared with the query itself.

    --count N     one-shot statements: of twelve, four expressions, two calls by PostgreSQL's own
                  signatures, four queries, one change of a table, one query with words too many,
                  too few or exchanged, which both refuse or answer alike (100,000)
    --views N     views, each read after ten changes                      (3,000)
    --seconds S   end after so long, whatever was reached; the figure says how far it came
    --only K,...  of expressions, calls, changes, mutations, queries and views only these, each
                  with its whole count: `--only calls --count 6000` are 6,000 calls
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from noonmark.clock import SYSTEM
from support.house.proving import answer, bar
from support.serve.process import serving
from support.sql.any.runs import Run, called, changes, mutants, queries, scalars, views
from support.sql.any.versus import both

#: Of one-shot statements so many are queries, calls of functions, changes of tables.
QUERIES, CALLS, CHANGES, MUTATIONS = 1 / 3, 1 / 6, 1 / 12, 1 / 12
KINDS = ("expressions", "calls", "changes", "mutations", "queries", "views")


def main(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--views", type=int, default=3_000)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--only", type=lambda text: text.split(","), default=KINDS)
    chosen = parser.parse_args(list(argv))
    parts = _parts(chosen.count, chosen.views, chosen.only)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        dsn = f"host=127.0.0.1 port={server.pg} user=me dbname=noonmark"
        count = sum(part[2] for part in parts)
        with both(dsn) as pair, bar("statements", count) as advance:
            run, share = Run(pair, chosen.seed, advance=advance), chosen.seconds
            start = SYSTEM.monotonic()
            reached = []
            for part, act, wanted in parts:
                if share is not None:
                    run.deadline = SYSTEM.monotonic() + part * share
                reached.append(act(run, wanted))
            minutes = (SYSTEM.monotonic() - start) / 60
    once = sum(reached[:-1])
    told = zip(KINDS, reached, strict=True)
    print(", ".join(f"{kind} {count}" for kind, count in told), f"in {minutes:.1f} minutes")
    print(f"told: {dict(pair.counts)}")
    print(f"refused by name: {pair.refusals.most_common(20)}")
    print(f"failed here alone, which is excused: {pair.alone.most_common(20)}")
    print(f"features met: {len(run.met)}; the rarest: {run.met.most_common()[-12:]}")
    goal = f"0 in {sum(part[2] for part in parts[:-1])} statements and {parts[-1][2]} views x 10"
    note = f"{once} statements, {reached[-1]} views in {minutes:.1f} min; {len(run.met)} features"
    return answer("any SQL against PostgreSQL", goal, run.wrong, dict(pair.counts), note)


Part = tuple[float, Callable[[Run, int], int], int]


def _parts(count: int, views_count: int, only: Sequence[str]) -> list[Part]:
    """The share of the time, the run and the number of each kind."""
    unknown = set(only) - set(KINDS)
    assert not unknown, f"--only takes {', '.join(KINDS)}, not {', '.join(unknown)}"
    parts = (CALLS, CHANGES, MUTATIONS, QUERIES)
    *rest, asked = (round(count * part) for part in parts)
    counts = (count - sum(rest) - asked, *rest, asked, views_count)
    acts = (scalars, called, changes, mutants, queries, views)
    shares = (0.15, 0.1, 0.05, 0.05, 0.3, 0.35)
    if set(only) == set(KINDS):
        return list(zip(shares, acts, counts, strict=True))
    wanted = [kind in only for kind in KINDS]
    counts = (*(count if each else 0 for each in wanted[:-1]), views_count if wanted[-1] else 0)
    whole = sum(share for share, each in zip(shares, wanted, strict=True) if each)
    return [(share / whole, *rest) for share, *rest in zip(shares, acts, counts, strict=True)]


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
