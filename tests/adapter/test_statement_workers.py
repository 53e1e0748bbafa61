"""Statement workers: what is much work can be ended, has a limit of memory, and fails alone.

The laws of `noonmark.adapter.worker` and `noonmark.adapter.planner`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter import planner
from noonmark.adapter.database import Database
from noonmark.adapter.planner import HERE_MAX, PLANNER, SHORT_MAX
from noonmark.adapter.weight import text_weight
from noonmark.adapter.worker.errors import OutOfMemory, ProgramLimitExceeded, WorkerLost
from noonmark.adapter.worker.limits import Limits
from noonmark.adapter.worker.pace import PRIORITIES
from noonmark.clock import SYSTEM
from noonmark.errors import DivisionByZero, NoonmarkError, QueryCanceled, TooComplex
from support.hostile.statements import PLANNING
from support.serve.reading import Conversation, connect, with_database

pytestmark = pytest.mark.alone

ENDLESS = "select count(*) from generate_series(1,100000) a, generate_series(1,100000) b"
MUCH = [
    ENDLESS,
    "with recursive w(x) as (select 1 union all select x + g from w, generate_series(1, 3) g) "
    "select count(*) from w",
    "select count(*) from generate_series('0001-01-01'::timestamp, '9999-12-31', '1 second') s",
    "select (repeat('a', 40) || 'b') ~ '^(a+)+\\1c$'",
    "select repeat('ab', 20000) ~ '(?=(a|b)*c)(ab)*d'",
    "select count(power(9.9::numeric, 99000 + a)) from t",
    "select string_agg(repeat('x', 1000), ',') from generate_series(1, 9000000)",
    "select repeat(repeat('x', 10000), 100000) from t a, t b, t c",
    f"insert into t select q.count::int from ({ENDLESS}) q",
    f"insert into t values ((({ENDLESS}))::int)",
    "insert into t values (length((repeat('a', 40) || 'b') ~ '^(a+)+\\1c$'::text))",
    f"update t set a = ({ENDLESS})",
    f"delete from t where a = ({ENDLESS})",
    "insert into t values (1) returning (repeat('a', 40) || 'b') ~ '^(a+)+\\1c$'",
    f"copy ({ENDLESS}) to stdout",
    f"subscribe ({ENDLESS})",
]


async def late_s(act: Awaitable[Any], timeout_s: float) -> float:
    """How long after its time a statement ended."""
    begun = SYSTEM.monotonic()
    with pytest.raises((QueryCanceled, OutOfMemory)):
        await act
    return SYSTEM.monotonic() - begun - timeout_s


async def prepared(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask("create table t (a int)")
    await client.ask("insert into t select * from generate_series(1, 100)")
    await opened.workers.warm()
    return client


@pytest.mark.parametrize("sql", MUCH, ids=lambda sql: sql[:40])
def test_a_statement_ends_at_its_timeout_wherever_it_is(sql: str) -> None:
    if "length((repeat" in sql:
        sql = "insert into t values (case when (repeat('a', 40) || 'b') ~ '^(a+)+\\1c$' then 1 end)"

    @with_database
    async def run(opened: Database) -> None:
        client = await prepared(opened)
        other = await connect(opened)
        await client.ask("set statement_timeout = 400")
        hostile = asyncio.ensure_future(late_s(_all(client, sql), 0.4))
        polite: list[float] = []
        while not hostile.done():
            begun = SYSTEM.monotonic()
            assert await other.ask("select 1") == [(1,)]
            polite.append(SYSTEM.monotonic() - begun)
            await asyncio.sleep(0.01)
        assert await hostile < 1.5
        assert max(polite) < 1.5, "the loop only speaks protocol"
        assert opened.workers.busy == 0, "nothing goes on"
        await client.ask("set statement_timeout = 0")
        assert await client.ask("select count(*) from generate_series(1, 5000)") == [(5000,)]

    run()


async def _all(client: Conversation, sql: str) -> None:
    outcome = await client.session.execute(await client.session.prepare(sql), ())
    async for _ in outcome.chunks:  # type: ignore[union-attr]
        pass


@with_database
async def test_a_cancel_kills_the_worker(opened: Database) -> None:
    client = await prepared(opened)
    asked = asyncio.ensure_future(client.ask(ENDLESS))
    while not opened.workers.busy:
        await asyncio.sleep(0.01)
    (pid,) = opened.workers.pids
    begun = SYSTEM.monotonic()
    client.session.cancel()
    with pytest.raises(QueryCanceled, match="user request"):
        await asked
    assert SYSTEM.monotonic() - begun < 1
    while os.path.exists(f"/proc/{pid}"):
        assert SYSTEM.monotonic() - begun < 5, "the process is gone"
        await asyncio.sleep(0.01)


@with_database
async def test_a_worker_that_was_killed_is_reaped_and_nobody_waits_for_it(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("set statement_timeout = 200")
    with pytest.raises((QueryCanceled, OutOfMemory)):
        await client.ask(
            "select string_agg(repeat('x', 1000), ',') from generate_series(1, 900000)"
        )
    gone = opened.workers.pids
    with pytest.raises(QueryCanceled):
        await client.ask(ENDLESS)
    async with asyncio.timeout(20):
        while any(Path(f"/proc/{pid}").exists() for pid in gone):
            await asyncio.sleep(0.05)
    await client.ask("set statement_timeout = 0")
    assert await client.ask("select count(*) from generate_series(1, 5000)") == [(5000,)]


@with_database
async def test_long_work_makes_room_for_short_work(opened: Database) -> None:
    client = await prepared(opened)
    asked = asyncio.ensure_future(client.ask(ENDLESS))
    while not opened.workers.busy:
        await asyncio.sleep(0.01)
    (worker,) = opened.workers.pids
    async with asyncio.timeout(30):  # of the processor it takes half a second
        while os.getpriority(os.PRIO_PROCESS, worker) < PRIORITIES[-1][1]:
            await asyncio.sleep(0.02)
    threads = [int(each.name) for each in Path(f"/proc/{worker}/task").iterdir()]
    assert len(threads) > 1
    assert all(os.getpriority(os.PRIO_PROCESS, each) == PRIORITIES[-1][1] for each in threads)
    # Where processors are shared by sessions, a priority counts inside of one.
    assert os.getsid(worker) == os.getsid(0)
    client.session.cancel()
    with pytest.raises(QueryCanceled):
        await asked


@with_database
async def test_work_that_waits_for_a_processor_is_not_long(opened: Database) -> None:
    client = await prepared(opened)
    short = "select count(*) from generate_series(1, 5000)"
    assert await client.ask(short) == [(5000,)]
    (pid,) = opened.workers.pids
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.ensure_future(client.ask(short))
    while not opened.workers.busy:
        await asyncio.sleep(0.01)
    await asyncio.sleep(2 * PRIORITIES[-1][0])
    os.kill(pid, signal.SIGCONT)
    assert await asked == [(5000,)]
    assert opened.workers.pids == [pid]  # not replaced: its priority is what it was


_KEEPS = """
import sys
import numpy as np
from noonmark.adapter.worker.child import _Memory
memory = _Memory(1 << 30)
with open(sys.argv[1], "wb") as file:
    file.truncate(400 << 20)
mapped = np.memmap(sys.argv[1], np.uint8, "r")
assert not mapped.max()
print("a file that is mapped", memory.is_given_back())
own = np.ones(300 << 20, np.uint8)
print("as much of its own", memory.is_given_back())
del own
print("when that is free", memory.is_given_back())
many = [bytes(1000) for _ in range(300_000)]
print("many small values", memory.is_given_back())
del many
print("when these are free", memory.is_given_back())
"""


def test_a_worker_is_kept_that_has_given_back_what_it_had(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KEEPS, str(tmp_path / "large")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "a file that is mapped True",
        "as much of its own False",
        "when that is free True",
        "many small values False",
        "when these are free True",
    ]


@with_database
async def test_a_worker_that_dies_fails_one_statement(opened: Database) -> None:
    client, other = await prepared(opened), await connect(opened)
    for number, kind in ((signal.SIGKILL, OutOfMemory), (signal.SIGSEGV, WorkerLost)):
        asked = asyncio.ensure_future(client.ask(ENDLESS))
        while not opened.workers.busy:
            await asyncio.sleep(0.01)
        (victim,) = {worker.pid for worker in opened.workers._busy}
        beside = asyncio.ensure_future(other.ask("select count(*) from generate_series(1, 90000)"))
        await asyncio.sleep(0.05)
        os.kill(victim, number)
        with pytest.raises(kind):
            await asked
        assert await beside == [(90_000,)]
        assert await client.ask("select count(*) from generate_series(1, 5000)") == [(5000,)]


@with_database
async def test_memory_has_a_limit_that_the_error_names(opened: Database) -> None:
    opened.workers.limits = Limits(workers=2, memory_mb=100)
    client = await prepared(opened)
    for sql in (
        "select string_agg(repeat('x', 1000) || n, ',') from generate_series(1, 900000) n",
        "select array_agg(n || 'x') from generate_series(1, 9000000) n",
        "insert into t select n::int from generate_series(1, 5000000) n",
    ):
        with pytest.raises(OutOfMemory, match="statement_worker_memory, 100MB") as found:
            await client.ask(sql)
        assert found.value.sqlstate == "53200"
    assert await client.ask("select count(*) from t") == [(100,)]


@with_database
async def test_a_statement_writes_no_more_rows_than_it_may(opened: Database) -> None:
    opened.workers.limits = Limits(write_rows=5_000)
    client = await prepared(opened)
    with pytest.raises(ProgramLimitExceeded, match="statement_write_rows_max"):
        await client.ask("insert into t select n from generate_series(1, 6000) n")
    assert await client.ask("insert into t select n from generate_series(1, 5000) n") == (
        "INSERT 0 5000"
    )


@with_database
async def test_a_worker_gives_the_answers_of_the_session(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("set application_name = 'mine'")
    await client.ask("begin")
    many = "from generate_series(1, 5000) n"
    for sql in (
        f"select distinct now(), current_user, current_date {many}",
        f"select distinct current_setting(case when n > 0 then 'application_name' end) {many}",
        f"select distinct pg_get_viewdef(n) is null, has_table_privilege('t', 'select') {many}",
        "select now(), current_user, mz_now() is null",
    ):
        assert await client.ask(sql) == await client.ask(sql)
    assert await client.ask(f"select distinct now() {many}") == await client.ask("select now()")
    (name,) = await client.ask(
        f"select distinct current_setting(case when n > 0 then 'application_name' end) {many}"
    )
    assert name == ("mine",)
    await client.ask("rollback")
    with pytest.raises(DivisionByZero):
        await client.ask(f"select 1 / (n - 4000) {many}")
    with pytest.raises(NoonmarkError, match="unrecognized configuration parameter"):
        await client.ask(f"select current_setting('no' || n) {many}")


@with_database
async def test_large_answers_come_whole_and_keep_nobody_waiting(opened: Database) -> None:
    opened.workers.limits = Limits(workers=1)
    client, other = await prepared(opened), await connect(opened)
    sql = "select n, repeat('x', 100) from generate_series(1, 60000) n order by n desc"
    stream = await client.stream(sql)
    chunks = aiter(stream.chunks)
    first = await anext(chunks)
    assert first[0][0] == 60_000
    # The client takes its time: the one worker is free for others.
    assert await other.ask("select count(*) from generate_series(1, 5000)") == [(5000,)]
    rest = [row async for chunk in chunks for row in chunk]
    assert [row[0] for row in (*first, *rest)] == list(range(60_000, 0, -1))
    folder = opened.workers._folder
    assert folder is not None
    assert list(folder.iterdir()) == [], "the file is gone"


@with_database
async def test_statements_wait_for_their_turn(opened: Database) -> None:
    opened.workers.limits = Limits(workers=2)
    await prepared(opened)
    clients = [await connect(opened) for _ in range(8)]
    found = await asyncio.gather(
        *(each.ask("select sum(n) from generate_series(1, 20000) n") for each in clients)
    )
    assert found == [[(200_010_000,)]] * 8
    assert len(opened.workers.pids) <= 2


@with_database
async def test_the_limits_are_shown(opened: Database) -> None:
    client = await connect(opened)
    assert await client.ask("show statement_workers") == [("8",)]
    assert await client.ask("show statement_worker_memory") == [("1024MB",)]
    assert await client.ask("show statement_write_rows_max") == [("2000000",)]
    assert await client.ask("show subscribe_rows_max") == [("50000",)]
    assert await client.ask("show subscribe_memory") == [("64MB",)]
    assert await client.ask("show mirror_memory") == [("512MB",)]
    assert await client.ask("show tick_timeout") == [("60s",)]
    assert await client.ask("show max_connections") == [("2500",)]
    assert await client.ask("show spark_python_memory") == [("4096MB",)]
    with pytest.raises(NoonmarkError, match="cannot be changed"):
        await client.ask("set statement_workers = 100")


@pytest.mark.parametrize("name", sorted(PLANNING))
def test_a_long_text_is_planned_or_refused_and_others_do_not_wait(name: str) -> None:
    @with_database
    async def run(opened: Database) -> None:
        client, other = await connect(opened), await connect(opened)
        await client.ask("create table kv (k int primary key, v text)")
        await client.ask("insert into kv values (1, 'a'), (2, 'b')")
        asked = asyncio.ensure_future(client.session.prepare(PLANNING[name](500)))
        polite: list[float] = []
        while not asked.done():
            begun = SYSTEM.monotonic()
            assert await other.ask("select v from kv where k = 1") == [("a",)]
            polite.append(SYSTEM.monotonic() - begun)
            await asyncio.sleep(0.01)
        error = asked.exception()
        assert error is None or isinstance(error, TooComplex), error
        assert max(polite, default=0) < 1.5

    run()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("select " + "(" * 900 + "1" + ")" * 900, 1),
        ("select " + "abs(" * 900 + "1" + ")" * 900, 1),
        ("select " + "not " * 900 + "true", True),
        ("select " + " + ".join(["1"] * 1_500), 1_500),
        ("select count(*) from t where " + " or ".join(f"a = {n}" for n in range(2_000)), 100),
        ("select count(*) from t where " + " and ".join(f"a <> -{n}" for n in range(2_000)), 100),
        ("select count(*) from (" + " union all ".join(["select 1"] * 2_000) + ") u", 2_000),
        ("select length(" + " || ".join(["'x'"] * 1_500) + ")", 1_500),
    ],
    ids=("parentheses", "calls", "not", "plus", "or", "and", "union all", "concat"),
)
def test_deep_and_long_statements_are_answered(text: str, answer: Any) -> None:
    @with_database
    async def run(opened: Database) -> None:
        client = await prepared(opened)
        assert await client.ask(text) == [(answer,)]

    run()


@with_database
async def test_what_is_too_deep_is_refused_by_name(opened: Database) -> None:
    client = await prepared(opened)
    for text in (
        "select " + "(" * 5_000 + "1" + ")" * 5_000,
        "select " + " + ".join(["a"] * 20_000) + " from t",
        "select " + "not " * 5_000 + "true",
    ):
        with pytest.raises(TooComplex, match="stack depth limit") as found:
            await client.ask(text)
        assert found.value.sqlstate == "54001"


@with_database
async def test_planning_is_cancelled(opened: Database) -> None:
    client = await connect(opened)
    await client.ask("create table kv (k int primary key, v text)")
    await client.ask("set statement_timeout = 300")
    text = PLANNING["values"](10_000)
    begun = SYSTEM.monotonic()
    with pytest.raises(QueryCanceled):
        await client.ask(text)
    assert SYSTEM.monotonic() - begun < 1.5


async def _spin() -> None:
    def spin() -> None:
        while True:
            pass

    await PLANNER.aside(SHORT_MAX + 1, spin)


def test_planning_is_bounded_by_what_it_takes_not_by_what_others_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "TIMEOUT_S", 0.2)

    async def run() -> None:
        planned = threading.Event()
        first = asyncio.ensure_future(PLANNER.aside(SHORT_MAX + 1, lambda: planned.wait(60)))
        second = asyncio.ensure_future(PLANNER.aside(SHORT_MAX + 1, lambda: 7))
        await asyncio.sleep(1)
        assert not first.done(), "it took no processor time"
        assert not second.done(), "it waits for its turn"
        planned.set()
        assert await first
        assert await second == 7
        with pytest.raises(TooComplex, match="cannot be planned in 0 seconds"):
            await _spin()

    asyncio.run(run())


@with_database
async def test_the_timeout_is_for_planning_and_running_together(opened: Database) -> None:
    client = await prepared(opened)
    await client.ask("set statement_timeout = 100000")
    ready = await client.session.prepare("select count(*) from t a, t b, t c")
    client.session._spent_s = 99.9  # as long as if the text had been a very long one
    begun = SYSTEM.monotonic()
    with pytest.raises(QueryCanceled):
        await client.session.execute(ready)
    assert SYSTEM.monotonic() - begun < 1.5
    client.session._spent_s = 0.0
    assert await client.ask("select count(*) from t") == [(100,)]


@with_database
async def test_a_small_statement_does_not_wait_for_the_planning_of_others(opened: Database) -> None:
    client, planned = await prepared(opened), threading.Event()
    planning = asyncio.ensure_future(PLANNER.aside(0, lambda: planned.wait(60)))
    try:
        async with asyncio.timeout(30):
            assert await client.ask("select count(*) from generate_series(1, 5000)") == [(5000,)]
        assert not planning.done()
    finally:
        planned.set()
        await planning


@with_database
async def test_a_short_statement_does_not_wait_for_longer_ones(opened: Database) -> None:
    client, planned = await prepared(opened), threading.Event()
    joined = "select count(*) from t x join t y on x.a = y.a join t z on y.a = z.a where x.a = 1"
    assert HERE_MAX < text_weight(joined) <= SHORT_MAX
    planning = asyncio.ensure_future(PLANNER.aside(SHORT_MAX + 1, lambda: planned.wait(60)))
    try:
        async with asyncio.timeout(30):
            await client.ask(joined)
        assert not planning.done()
    finally:
        planned.set()
        await planning


WITHOUT_SPARK = """
import asyncio, sys
from support.serve.reading import connect, database

async def main():
    async with database() as opened:
        client = await connect(opened)
        await client.ask("create table t (a int)")
        await client.ask("insert into t values (1)")
        await client.ask("drop table t")
    assert "pyspark" not in sys.modules

asyncio.run(main())
"""


def test_tables_are_made_and_dropped_without_the_modules_of_spark() -> None:
    """Whoever imports them on the loop waits for everybody who imports them."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK], env={**os.environ, "PYTHONPATH": path}, check=True
    )
