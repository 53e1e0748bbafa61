"""C9: the matrix of source faults, each row with a real server (``docs/sources/faults.md``).

Runs the tests of faults, without Spark, and counts them: a row that does not behave as stated is a
violation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options

TESTS = Path(__file__).resolve().parents[1]
FILES = (
    "integration/test_source_postgres_faults.py",
    "integration/test_source_postgres.py",
    "integration/test_source_postgres_failover.py",
    "integration/test_source_postgres_published.py",
    "integration/test_source_postgres_roles.py",
    "integration/test_source_postgres_snapshot.py",
    "integration/test_source_postgres_truncate.py",
    "integration/test_source_alter_tables.py",
    "integration/test_source_refresh_kill.py",
    "integration/test_source_kafka.py",
    "integration/test_source_kafka_refresh.py",
    "integration/test_source_kafka_refresh_kill.py",
    "integration/test_source_kafka_secure.py",
    "integration/test_source_kafka_postgres_sql.py",
    "integration/test_source_kafka_postgres_kill.py",
    "integration/test_sink_kafka_kill.py",
    "integration/test_ingest_bad_input.py",
    "property/test_source_avro.py",
)


class Outcomes:
    """What pytest says of each test."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.passed: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or report.failed:
            self.failed.append(f"{report.nodeid}: {report.outcome}")
        elif report.when == "call":
            self.passed[Path(report.nodeid.partition("::")[0]).stem] += 1


def main(argv: Sequence[str]) -> dict[str, Any]:
    options(argv, 1, "runs")
    outcomes = Outcomes()
    files = [str(TESTS / name) for name in FILES]
    status = pytest.main(
        ["-q", "-m", "not spark", "--rootdir", str(TESTS.parent), *files], [outcomes]
    )
    if status not in (0, 1):
        outcomes.failed.append(f"pytest ended with status {int(status)}")
    goal = "0, and at least 20 rows"
    found = answer("every row of the matrix of source faults", goal, outcomes.failed,
                   outcomes.passed)  # fmt: skip
    return {**found, "met": found["met"] and outcomes.passed.total() >= 20}


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
