"""Statements that are nearly right get an answer or an error of the client's: a part of C11."""

from __future__ import annotations

from pathlib import Path

from support.hostile.mutated import Mutations
from support.hostile.mutated_run import MutatedRun
from support.serve.host import DatabaseHost


def test_what_is_typed_badly_is_no_internal_error(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path / "location"))
    run = MutatedRun(host.dsn("noonmark"), 11)
    run.run(1_500)
    host.close()
    assert run.violations == []
    assert run.counts["answered"] > 1_000
    assert len(run.counts) > 20, "they are all refused for the same reason"


def test_the_same_seed_says_the_same() -> None:
    one, two, other = Mutations(1), Mutations(1), Mutations(2)
    said = [one.next() for _ in range(50)]
    assert said == [two.next() for _ in range(50)]
    assert said != [other.next() for _ in range(50)]
