"""A PostgreSQL under writers and kills, and what its tables were at every position of its log.

Eight writers run transactions of every kind on four tables (`WORK`), many of them acknowledged
before they are flushed. Triggers keep a history: which transaction did what to which row. One table
is only ever added to, and its rows name their transactions themselves: with little else in the log,
every third byte of it belongs to a commit record, and so do the ends of the pages that the server
writes ahead. When a transaction took place is read from the log itself, as `pg_walinspect` shows
it: its commit record. Together they say what each table was at a position, and share nothing with
what is judged.
"""

from __future__ import annotations

import os
import signal
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from noonmark.clock import SYSTEM
from support.neighbour.servers import PostgresServer, start_postgres

WATCHED = ("acct", "kid", "log")
TABLES = (*WATCHED, "added")
WRITERS = 8
#: How many transactions a writer asks for at once.
_CALL = 25
#: How many all writers together begin in a second: two cores that are shared must have time to read
#: them.
RATE = 1500.0
_LARGE = 3000
_PHASE_S = 4

SYSTEM_SETTINGS = (
    "alter system set wal_keep_size = '2GB'",
    "alter system set deadlock_timeout = '100ms'",
    # Rarely enough for pages to fill up: then the log on disk ends with a page, and often inside of
    # a commit record.
    "alter system set wal_writer_delay = '1s'",
    "select pg_reload_conf()",
)
SCHEMA = """
create extension pg_walinspect;
create table acct (id int primary key, n int, w text);
create table kid (id int primary key, n int, w text);
create table log (id int, n int, w text);
alter table log replica identity full;
create table added (id int generated always as identity,
  n bigint default pg_current_xact_id()::text::bigint, w text);
alter table added replica identity full;
alter table acct alter w set storage external;
create table history (seq bigint generated always as identity primary key, xid bigint not null,
  tab text not null, op text not null, old_id int, old_n int, old_w text,
  new_id int, new_n int, new_w text);
create table commits (xid bigint primary key, ended bigint not null);
create function note() returns trigger language plpgsql as $$
declare me bigint := pg_current_xact_id()::text::bigint;
begin
  if tg_op = 'TRUNCATE' then
    insert into history (xid, tab, op) values (me, tg_table_name, 'T');
  elsif tg_op = 'INSERT' then
    insert into history (xid, tab, op, new_id, new_n, new_w)
      values (me, tg_table_name, 'I', new.id, new.n, new.w);
  elsif tg_op = 'DELETE' then
    insert into history (xid, tab, op, old_id, old_n, old_w)
      values (me, tg_table_name, 'D', old.id, old.n, old.w);
  else
    insert into history (xid, tab, op, old_id, old_n, old_w, new_id, new_n, new_w)
      values (me, tg_table_name, 'U', old.id, old.n, old.w, new.id, new.n, new.w);
  end if;
  return null;
end $$;
"""
WATCH = """
create trigger rows_of_{0} after insert or update or delete on {0} for each row
  execute function note();
create trigger all_of_{0} after truncate on {0} for each statement execute function note();
"""
WORK = """
create procedure work(steps int, seed float8) language plpgsql as $$
declare r float8; k int; off float8; phase int;
begin
  perform setseed(seed);
  for step in 1..steps loop
    -- For seconds nobody waits for the disk, and the log is written out page by page; then some do.
    phase := (extract(epoch from clock_timestamp())::int / {phase}) % 4;
    off := (array[1.0, 1.0, 1.0, 0.3])[1 + phase];
    perform set_config('synchronous_commit', case when random() < off then 'off' else 'on' end,
                       true);
    r := random();
    k := (random() * 199)::int;
    if phase <= 1 and random() < 0.95 then
      insert into added (w) values ('t');
    elsif r < 0.40 then
      insert into acct values (k, 0, 'a') on conflict (id) do update set n = acct.n + 1;
    elsif r < 0.50 then
      update acct set n = n + 1 where id = k;
      update log set n = n + 1 where id = k;
    elsif r < 0.62 then
      insert into log values (k, step, 'w');
    elsif r < 0.70 then
      delete from log where id in (k, k + 1);
    elsif r < 0.74 then
      delete from acct where id = k;
    elsif r < 0.78 then  -- a savepoint that is rolled back, between what stays
      insert into log values (k, step, 'before');
      begin
        insert into log values (k, step, 'rolled back');
        delete from acct where id = k;
        raise exception using errcode = 'PX001';
      exception when sqlstate 'PX001' then null;
      end;
      insert into log values (k, step, 'after');
    elsif r < 0.81 then  -- savepoints that stay, one of them inside of another
      begin
        insert into log values (k, step, 'outer');
        begin
          update kid set n = n + 1 where id = k;
        exception when sqlstate 'PX001' then null;
        end;
      exception when sqlstate 'PX001' then null;
      end;
    elsif r < 0.86 then
      insert into kid values (k, 0, 'k') on conflict (id) do update set n = kid.n + 1;
    elsif r < 0.88 then  -- another key
      update kid set id = id + 1000, n = n + 1 where id = k
        and not exists (select from kid where id = k + 1000);
    elsif r < 0.90 then  -- a large value, and an update that leaves it out of the log
      insert into acct values (k, 0, repeat('x', 2500))
        on conflict (id) do update set w = excluded.w;
      update acct set n = n + 1 where id = k;
    elsif r < 0.93 then
      insert into log values (k, step, 'never');
      rollback;
    elsif r < 0.95 then  -- empty
      null;
    elsif r < 0.96 then  -- nothing but a number
      perform pg_current_xact_id();
    elsif r < 0.9990 then
      update kid set n = n + 1 where id = k;
    elsif r < 0.9993 then
      insert into log select k, i, 'large' from generate_series(1, {large}) i;
      delete from log where n % 10 <> 0 and w = 'large';
    elsif r < 0.9996 then
      truncate log;
    elsif r < 0.9998 then
      truncate acct, kid restart identity cascade;
      insert into acct values (k, 1, 'first');
    else
      insert into log values (k, step, 'gone');
      truncate log;
      insert into log values (k, step, 'first');
    end if;
    commit;
  end loop;
end $$;
""".replace("{large}", str(_LARGE)).replace("{phase}", str(_PHASE_S))
_COMMITS = """
select xid::text::bigint, (start_lsn - '0/0'::pg_lsn)::bigint, (end_lsn - '0/0'::pg_lsn)::bigint,
  end_lsn::text
from pg_get_wal_records_info(%s::pg_lsn, %s::pg_lsn)
where resource_manager = 'Transaction' and record_type like 'COMMIT%%'
"""
_FLUSHED = """
select end_lsn::text, (end_lsn - '0/0'::pg_lsn)::bigint from pg_current_wal_flush_lsn() end_lsn
"""
_HISTORY = """
select c.ended, h.tab, h.op, h.old_id, h.old_n, h.old_w, h.new_id, h.new_n, h.new_w
from (select seq, xid, tab, op, old_id, old_n, old_w, new_id, new_n::bigint, new_w from history
      union all select 0, n, 'added', 'I', null, null, null, id, n, w from added) h
join commits c using (xid) order by c.ended, h.seq
"""


@dataclass
class Writers:
    """Threads that keep `work` going, through everything that happens to the server.

    They follow the pace of who reads (`follow`), so that as many bindings are made on a busy
    machine as on an idle one, and never pause while he binds: a log at rest has no position that is
    hard to bind.

    Attributes:
        rate: transactions a second, all writers together; at most `RATE`.
        ahead: so many more than were read are begun at most.
    """

    url: str
    seed: int
    rate: float
    ahead: int
    errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._begun, self._allowed = 0, self.ahead
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def follow(self, transactions: int, rate: float) -> None:
        """Somebody has read so many, and reads so many a second."""
        with self._changed:
            self.rate = min(RATE, rate)
            self._allowed = transactions + self.ahead
            self._changed.notify_all()

    def _may_begin(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._begun < self._allowed or self._stop.is_set())
            self._begun += _CALL

    def _run(self, number: int) -> None:
        random = Random(f"{self.seed}/{number}")
        while not self._stop.is_set():
            try:
                with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as session:
                    while not self._stop.is_set():
                        self._may_begin()
                        began = SYSTEM.monotonic()
                        session.execute("call work(%s, %s)", (_CALL, random.random()))
                        pause_s = _CALL * WRITERS / self.rate - (SYSTEM.monotonic() - began)
                        self._stop.wait(max(0.0, pause_s))
            except psycopg.Error as error:
                self.errors[type(error).__name__] += 1
                self._stop.wait(0.05)


@dataclass
class ExactUpstream:
    """One server of its own, in a folder; its database has publication `p`."""

    folder: Path
    seed: int
    rate: float = RATE
    ahead: int = 3000
    commits: dict[int, int] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._running = ExitStack()
        self.server: PostgresServer = self._running.enter_context(start_postgres(self.folder))
        self.url = self.server.dsn
        # Where the next record begins; later, where a commit record ended: never inside of one.
        self._scanned = str(self.run("select pg_current_wal_insert_lsn()::text")[0][0])
        self.scanned_to = 0
        self._flushed: list[int] = []
        for statement in (*SYSTEM_SETTINGS, SCHEMA, *map(WATCH.format, WATCHED), WORK):
            self.run(statement)
        self.run("create publication p for table " + ", ".join(TABLES))
        self.run("insert into acct select i, i, 'old' from generate_series(1, 150) i")
        self.run("insert into log select i % 50, i, 'old' from generate_series(1, 300) i")
        self.writers = Writers(self.url, self.seed, self.rate, self.ahead)

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement, in a session of its own."""
        with psycopg.connect(self.url, autocommit=True) as session:
            made = session.execute(statement.encode(), values or None)
            return made.fetchall() if made.description else []

    def close(self) -> None:
        self.writers.stop()
        self._running.close()

    # -- faults -----------------------------------------------------------------------------

    def kill_server(self) -> None:
        """SIGKILL to every process of the server at once, and a start on what is on disk."""
        self.faults["kill -9 of PostgreSQL"] += 1
        crash(self._running, self.folder, self.server.port)

    def end_sessions(self) -> None:
        """End the sessions of who reads the log."""
        self.faults["replication session ended"] += 1
        self.run(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'noonmark'"
        )

    def add_column(self, number: int) -> None:
        self.faults["column added"] += 1
        table = TABLES[number % len(TABLES)]
        with psycopg.connect(self.url, autocommit=True) as session:
            session.execute("set lock_timeout = '5s'")
            session.execute(f"alter table {table} add column x{number} int default 7".encode())

    # -- the judge --------------------------------------------------------------------------

    def scan(self) -> None:
        """Note the commits that the log on disk has got since the last time."""
        end, self.scanned_to = self.run(_FLUSHED)[0]
        self._flushed.append(self.scanned_to)
        try:
            found = self.run(_COMMITS, self._scanned, end)
        except psycopg.errors.InternalError_ as error:
            if "could not find a valid record" not in str(error):
                raise
            return  # the next record is not on disk, or not all of it
        if found:
            self.commits.update((xid, ended) for xid, _, ended, _ in found)
            self._scanned = found[-1][3]
            self._note_straddled([(began, ended) for _, began, ended, _ in found])

    def _note_straddled(self, records: list[tuple[int, int]]) -> None:
        """Count the flush positions that lay inside of a commit record: none may be bound."""
        for position in self._flushed:
            at = bisect_left(records, (position, 0)) - 1
            if at >= 0 and position < records[at][1]:
                self.faults["flush position inside of a commit record"] += 1
        self._flushed = [each for each in self._flushed if each >= records[-1][1]]

    def changes(self) -> Iterator[tuple[Any, ...]]:
        """What every transaction did: in the order of the commits, and with their positions."""
        with psycopg.connect(self.url) as session:
            with session.cursor().copy("copy commits from stdin") as copy:
                for row in self.commits.items():
                    copy.write_row(row)
            session.execute("analyze commits")
            with session.cursor(name="changes") as cursor:
                cursor.itersize = 20_000
                yield from cursor.execute(_HISTORY)


def crash(running: ExitStack, folder: Path, port: int) -> None:
    """SIGKILL to every process of the server that `running` runs in a folder; then it is back."""
    main = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(main, signal.SIGSTOP)  # so that it starts nobody while we look
    all_of_them = (*_children(main), main)
    for pid in all_of_them:
        os.kill(pid, signal.SIGKILL)
    running.close()
    while any(map(_is_alive, all_of_them)):
        threading.Event().wait(0.02)
    running.enter_context(start_postgres(folder, port))


def _children(parent: int) -> list[int]:
    found = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in found if _status(pid)[1] == str(parent)]


def _is_alive(pid: int) -> bool:
    return _status(pid)[0] not in "ZX"


def _status(pid: int) -> list[str]:
    """The state of a process, X when there is none, and who has started it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", ""]
