"""Planning is near-linear in its text: how large a statement may be, and what it takes.

Each row of the table is a shape and a size that plans in seconds of processor time
(`adapter.planner` ends what takes ten), or is refused by a limit that the error names.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable

import pytest

from noonmark.adapter.planner import TIMEOUT_S
from noonmark.adapter.worker.child import RECURSION_MAX, STACK_BYTES
from noonmark.errors import TooComplex
from noonmark.rows.schema import Schema
from noonmark.sql import parse
from noonmark.sql.rules import simplify
from noonmark.sql.statement import parse_statements
from noonmark.sql.statement import statement as st
from support.hostile.statements import PLANNING

SCHEMAS = {"kv": Schema.of(k="integer not null", v="text")}


@pytest.fixture(autouse=True, scope="module")
def small_heap() -> None:
    """What else there is in this process is not walked by the garbage collector meanwhile."""
    gc.collect()
    gc.freeze()


def planned_s(text: str) -> float:
    """The processor time of reading and planning a text, in a thread as large as the planner's."""
    found: list[float | BaseException] = []

    def plan() -> None:
        try:
            begun = time.thread_time()
            (parsed,) = parse_statements(text)
            assert isinstance(parsed.statement, st.Select)
            simplify(parse.plan_query(parsed.statement.query.tree, SCHEMAS).relation)
            found.append(time.thread_time() - begun)
        except BaseException as error:
            found.append(error)

    limit, before = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(RECURSION_MAX)
    try:
        thread = threading.Thread(target=plan)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(before)
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("case", 10_000),
        ("in", 10_000),  # of 50,000 values
        ("or", 10_000),
        ("and", 10_000),
        ("union", 10_000),  # ALL
        ("columns", 2_000),
        ("aggregates", 1_000),
        ("parens", 1_000),
        ("functions", 1_000),
        ("not", 1_000),
        ("casts", 500),
        ("exists", 10_000),  # 50 queries inside of each other
    ],
)
def test_it_is_planned_in_seconds(shape: str, size: int) -> None:
    assert planned_s(PLANNING[shape](size)) < TIMEOUT_S


@pytest.mark.parametrize("shape", ["concat", "plus", "parens", "not"])
def test_it_is_refused_by_a_limit_that_the_error_names(shape: str) -> None:
    with pytest.raises(TooComplex, match="stack depth limit"):
        planned_s(PLANNING[shape](10_000))


@pytest.mark.parametrize("shape", ["case", "in", "or", "union", "columns", "coalesce"])
def test_it_grows_as_its_text_does(shape: str) -> None:
    make: Callable[[int], str] = PLANNING[shape]
    planned_s(make(100))
    small, large = (min(planned_s(make(size)) for _ in range(2)) for size in (400, 2_400))
    assert large < 6 * small * 2.5 + 0.5, "a quadratic one takes 36 times as long"
