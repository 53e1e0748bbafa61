"""C14 in small: random expressions and queries against a real PostgreSQL, by the same client."""

from __future__ import annotations

from support.sql.any.choices import Choices, smaller
from support.sql.any.runs import Run, called, changes, mutants, queries, scalars
from support.sql.any.versus import both, judge
from support.sql.seen import Seen

EXPRESSIONS, CALLS, CHANGES, QUERIES, MUTANTS = 220, 100, 40, 40, 200


def test_expressions_and_queries_mean_what_they_mean_in_postgresql() -> None:
    with both() as pair:
        run = Run(pair, seed=20)
        scalars(run, EXPRESSIONS)
        called(run, CALLS)
        changes(run, CHANGES)
        queries(run, QUERIES)
        mutants(run, MUTANTS)
        assert run.wrong == [], "\n".join(run.wrong)
        assert pair.counts["answered"] > 200
        assert len(run.met) > 150


def test_queries_by_kernels_mean_what_they_mean_in_postgresql() -> None:
    with both(by_columns=True) as pair:
        run = Run(pair, seed=21)
        queries(run, QUERIES)
        assert run.wrong == [], "\n".join(run.wrong)
        assert pair.counts["answered"] > 20


def test_a_failing_sequence_is_made_smaller() -> None:
    drawn = Choices(seed=1)
    numbers = [drawn.below(1000) for _ in range(60)]
    small = smaller(numbers, lambda trial: any(number > 900 for number in trial))
    assert len(small) == 1
    assert small[0] > 900


def test_the_judge_sees_the_order_of_rows() -> None:
    def judged(kind: int, mine: str, theirs: str) -> str:
        seen = [Seen(("a",), ((kind, -1),), tuple((x,) for x in e.split())) for e in (mine, theirs)]
        return judge("select a from t order by a", *seen, one_row=False, ordered=True)

    assert judged(23, "1 2", "1 2") == "answered"
    assert judged(23, "1 2", "2 1") == "wrong"
    assert judged(701, "0 -0 1", "-0 0 1") == "form"
    assert judged(701, "0 -0 1", "1 -0 0") == "wrong"
    assert judged(1700, "0 0.00 1", "0.00 0 1") == "form"
    assert judged(1700, "0 0.0 1", "0.00 0 1") == "wrong"
