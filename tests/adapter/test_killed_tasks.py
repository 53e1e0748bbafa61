"""C17 in small, without Spark: what works behind a database is killed under load."""

from __future__ import annotations

from noonmark.adapter.database import Database
from support.kill.killed_tasks import killed
from support.serve.reading import with_database


@with_database
async def test_service_comes_back_and_nothing_is_lost(opened: Database) -> None:
    run = await killed(opened, 8, seed=17, view=False)
    assert run.violations == []
    assert {"committer", "worker", "zygote"} <= set(run.kills)
