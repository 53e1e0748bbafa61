"""What a server loads before it answers: nothing of what only a part of its statements needs.

Its start is mostly imports, so this is what keeps it short; how short, `make bench` would say on a
quiet machine.
"""

from __future__ import annotations

import subprocess
import sys

#: Loaded when the first statement needs them, or in the thread that starts Spark.
LATER = ("pyspark", "pandas", "confluent_kafka", "psycopg", "rich", "duckdb", "nicegui")
#: As many as there are today, and some room.
MODULES_MAX = 1250


def test_a_server_loads_what_it_needs() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, noonmark.cli, noonmark.serve.run; print(*sorted(sys.modules))",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.split()
    tops = {name.split(".", 1)[0] for name in said}
    assert sorted(tops & set(LATER)) == []
    assert len(said) < MODULES_MAX
