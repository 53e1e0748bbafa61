"""Run seeds from the command line: ``python -m tests.simulation --seeds 0:100``."""

from __future__ import annotations

import argparse
import sys

from .run import OPERATIONS, run_seed


def main(argv: list[str] | None = None) -> int:
    """Run the seeds that are asked for; 1 when one of them breaks a law."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", default="0:20", help="FROM:TO, without TO")
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--trace", action="store_true", help="print every event")
    options = parser.parse_args(argv)
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last)) if options.seed is None else [options.seed]
    broken = 0
    for seed in seeds:
        report = run_seed(seed, options.operations, print_events=options.trace)
        verdict = report.violation or "ok"
        print(f"seed {seed} {report.digest} reads {report.reads} {verdict}")
        if report.violation:
            broken += 1
            print(f"  again: {report.command}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
