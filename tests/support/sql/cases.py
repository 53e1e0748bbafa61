"""Cases as text: a query, a line of dashes, what becomes of it.

    # why the case is there
    select a from t where true
    ----
    Project a = #0:a
      Scan t

The collections are those of `support.sql.queries`, and TPC-H's in files that start with ``tpch``.
``NOONMARK_REWRITE=1`` writes what is now into the files, for review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from noonmark.errors import NoonmarkError
from noonmark.rows.schema import Schema
from noonmark.sql.dialect import read as read_sql
from noonmark.sql.ir.show import show
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "sql"
REWRITE = os.environ.get("NOONMARK_REWRITE") == "1"
_LINE = "----"


@dataclass(frozen=True)
class Case:
    """One case: its comment, its query, and what is expected."""

    comment: str
    sql: str
    expected: str

    def text(self, result: str) -> str:
        comment = f"{self.comment}\n" if self.comment else ""
        return f"{comment}{self.sql}\n{_LINE}\n{result}\n"


def read(path: Path) -> list[Case]:
    cases = []
    for block in re.split("\n\n+", path.read_text().strip()):
        query, _, expected = f"{block}\n".partition(f"\n{_LINE}\n")
        lines = query.splitlines()
        comment = [line for line in lines if line.startswith("#")]
        sql = [line for line in lines if not line.startswith("#")]
        cases.append(Case("\n".join(comment), "\n".join(sql), expected.strip("\n")))
    return cases


def outcome(sql: str, schemas: Mapping[str, Schema], *, rules: bool = True) -> str:
    """The plan as text, or the error as one."""
    try:
        query = plan_query(read_sql(sql), schemas)
        return show(simplify(query.ordered) if rules else query.ordered)
    except NoonmarkError as error:
        where = f" at {error.position}" if error.position else ""
        return f"error {error.sqlstate}{where}: {error}"


def differing(path: Path, act: Callable[[str], str]) -> list[str]:
    """The cases of a file whose outcome is another one; none after rewriting."""
    cases = read(path)
    results = [act(case.sql) for case in cases]
    if REWRITE:
        path.write_text(
            "\n".join(case.text(result) for case, result in zip(cases, results, strict=True))
        )
        return []
    return [
        case.text(result)
        for case, result in zip(cases, results, strict=True)
        if result != case.expected
    ]
