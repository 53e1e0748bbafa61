"""The residents of a Spark context: lent to ticks, and begun again when they die.

A Spark job costs 65 to 100 ms before any work, and most ticks need less for the work itself. A
resident is a job of one task that stays: it keeps what it has open of the collections, and takes
works over its line in less than a millisecond.

Law (never less): a work that no resident is free for in the time that a job of its own would take,
or whose resident dies with it, is left to somebody else. Nothing is committed by a task, so one
that ran twice ran once.
Law (warm): a view goes to the resident that it was with before, while that one is free. `cold` says
which views no resident has brought forward in its life: the first time takes it longer than any
other, for code is read and indexes are opened. So who asks may have it done elsewhere, and
rehearsed here (`rehearse`): what a rehearsal makes, nobody takes.
Law (room): jobs have as many cores as without residents. A session that Noonmark starts on this
machine has further cores for them; of another session they take a quarter, and of one with a single
core none. `spark.noonmark.residents` says another number.

Where it runs: driver; one thread waits for each resident's job, one for lines.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from noonmark import defect
from noonmark.clock import SYSTEM
from noonmark.compute.jvm.lost import why_lost
from noonmark.compute.jvm.session import AUTOMATIC, RESIDENTS
from noonmark.compute.runner.job import TickResult
from noonmark.compute.runner.limit import Limit
from noonmark.compute.runner.resident.lines import Line, LineLost
from noonmark.compute.runner.resident.task import ResidentTask
from noonmark.compute.runner.runner import JOBS, Named, brought_forward
from noonmark.errors import Interrupted, NoonmarkError
from noonmark.persist.spark.errors import SPARK_ERRORS
from noonmark.supervise import Supervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("noonmark.spark")

#: How long a tick waits for a resident: as long as a job of its own took last, in these bounds.
WAIT_S, WAIT_LARGEST_S = 0.07, 2.0
#: A resident that lived so long has no past; the pause before the next one grows otherwise.
_STEADY_S = 5.0
_PAUSE_FIRST_S, _PAUSE_LARGEST_S, _PAUSE_ROOM_S = 0.1, 30.0, 1.0
_PYTHON_ERROR = re.compile(r"^\w[\w.]*(?:Error|Exception): .*$", re.MULTILINE)
#: How often those who wait look up.
_LOOK_S = 0.5
#: How many views are remembered with the resident that they are with.
_HOMES_MAX = 4096
#: How long a rehearsal may keep its resident from others.
REHEARSAL_S = 180.0
#: A work of more updates is not done twice for that.
REHEARSED_ROWS_MAX = 20_000

#: What works made, by their places.
Made: TypeAlias = "dict[int, TickResult | NoonmarkError]"


@dataclass(eq=False)
class Resident:
    """One of them.

    Attributes:
        number: which one.
        line: to its task, while there is one.
        group: of the tick that it is lent to.
        was_ended: whether that tick was ended.
        warm: the views that it has brought forward in this life.
    """

    number: int
    line: Line | None = None
    group: str | None = None
    was_ended: bool = False
    warm: set[str] = field(default_factory=set)

    @property
    def job_group(self) -> str:
        """Of its own job."""
        return f"noonmark-resident-{self.number}"


class Share(NamedTuple):
    """A resident that is lent, and which of the works it is to do."""

    resident: Resident
    line: Line
    places: list[int]


class Residents:
    """See the module. `run` may be asked from many threads at once."""

    def __init__(self, spark: SparkSession, supervisor: Supervisor) -> None:
        self._spark = spark
        self.context = spark.sparkContext
        self._secret = secrets.token_bytes(32)
        self._stopping = threading.Event()
        self._change = threading.Condition()
        #: Which resident a view was with last.
        self._homes: dict[str, Resident] = {}
        self._rehearsed: set[str] = set()
        self._wait_s = WAIT_S
        #: Whether a task of ours has begun on this session: until then jobs are cold, too.
        self._has_begun = False
        self.residents = [Resident(number) for number in range(_count(spark))]
        if not self.residents:
            threading.Thread(target=self._first_job, name="noonmark-first-job", daemon=True).start()
            return
        conf = self.context.getConf()
        host = conf.get("spark.driver.host") or socket.gethostname()
        self._server = socket.create_server((conf.get("spark.driver.bindAddress") or host, 0))
        self._server.settimeout(_LOOK_S)
        self._address = host, self._server.getsockname()[1]
        supervisor.thread("residents", "", self._answer, self._stopping)
        for each in self.residents:
            keep = partial(self._keep, each)
            supervisor.thread("resident", str(each.number), keep, self._stopping)

    # -- their lives -----------------------------------------------------------------------------

    def stop(self) -> None:
        """End them; does not wait."""
        if self._stopping.is_set() or not self.residents:
            return
        self._stopping.set()
        with self._change:
            lines = [each.line for each in self.residents if each.line is not None]
        for line in lines:
            line.shut()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _keep(self, resident: Resident) -> None:
        """One life after another, while there is a session for them."""
        pause_s = 0.0
        while not self._stopping.wait(pause_s) and why_lost(self._spark) is None:
            if not _is_local(self._spark) and _cores(self._spark) <= len(self.residents):
                pause_s = _PAUSE_ROOM_S  # executors are still to come: jobs have the first ones
                if resident.number == 0 and not self._has_begun:
                    self._first_job()
                continue
            began_s = SYSTEM.monotonic()
            self._live(resident)
            short = SYSTEM.monotonic() - began_s < _STEADY_S
            pause_s = min(max(2 * pause_s, _PAUSE_FIRST_S), _PAUSE_LARGEST_S) if short else 0.0

    def _live(self, resident: Resident) -> None:
        """One life: its job is waited for beside, because nothing gets through to who waits."""
        JOBS.end(lambda: self._spark, resident.job_group)  # what a arrangement that died has left
        ended = threading.Event()
        waiting = threading.Thread(
            target=self._job, args=(resident, ended), name=resident.job_group, daemon=True
        )
        waiting.start()
        try:
            while not ended.wait(_LOOK_S):
                pass
        finally:
            with self._change:
                resident.line = None

    def _job(self, resident: Resident, ended: threading.Event) -> None:
        task = ResidentTask(self._address, self._secret, resident.number)
        try:
            self.context.setJobGroup(resident.job_group, "resident task", interruptOnCancel=True)
            self.context.parallelize([0], 1).mapPartitions(task).collect()
        except SPARK_ERRORS as error:
            if not self._stopping.is_set() and why_lost(self._spark) is None:
                LOG.warning("a resident task ended, and another is started: %s", _said(error))
        except Exception as error:  # nobody foresaw it: it has a number in the log
            defect.report(error, resident.job_group)
        finally:
            ended.set()

    def _first_job(self) -> None:
        """An empty job: where no resident comes up, the first tick need not be the first job."""
        try:
            self.context.parallelize([0], 1).mapPartitions(_nothing).collect()
        except SPARK_ERRORS as error:
            LOG.warning("the first job of a session failed: %s", _said(error))
        self._has_begun = True

    def _answer(self) -> None:
        """Take the lines that residents open."""
        while not self._stopping.is_set():
            try:
                end, _ = self._server.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._stopping.is_set():
                    return
                raise
            try:
                line, number = Line.answering(end, self._secret)
            except LineLost as error:
                LOG.warning("somebody who is no resident task was refused: %s", error)
                continue
            with self._change:
                self.residents[number].line = line
                self.residents[number].warm = set()
                self._has_begun = True
                self._change.notify_all()

    # -- ticks -----------------------------------------------------------------------------------

    def run(self, works: Sequence[Named], group: str) -> Made:
        """What residents make of works, by their places; of some of them nothing.

        Raises:
            Interrupted: they were ended.
        """
        shares = self._lend([name for name, _ in works], group)
        made: Made = {}
        try:
            asked = [each for each in shares if self._send(each, works)]
            for share in asked:
                done = self._received(share)
                share.resident.warm |= brought_forward([works[at] for at in done])
                made |= done
            was_ended = any(share.resident.was_ended for share in shares)
        finally:
            self._give_back(shares)
        if was_ended:
            raise Interrupted("the tick was ended")
        return made

    def job_took(self, seconds: float) -> None:
        """Learn what a job costs now: where the processors are others' it is much more."""
        self._wait_s = min(max(WAIT_S, seconds), WAIT_LARGEST_S)

    def cold(self, names: Iterable[str]) -> set[str]:
        """Which of these views no resident that is up has brought forward."""
        with self._change:
            warm = [each.warm for each in self.residents if each.line is not None]
        return set(names).difference(*warm)

    @property
    def is_cold(self) -> bool:
        """Whether nothing that Spark does is warm."""
        return not (self._has_begun or self._stopping.is_set())

    def rehearse(self, works: Sequence[Named]) -> None:
        """Begin to have residents do works beside whoever does them; one rehearsal of a view.

        Much work is done once: the next tick that is small is as good a rehearsal.
        """
        works = [each for each in works if each[1].rows <= REHEARSED_ROWS_MAX]
        with self._change:
            wanted = brought_forward(works) - self._rehearsed
            if not wanted or not self._is_any_up():
                return
            self._rehearsed |= wanted
        named = [each for each in works if each[0] in wanted]
        begin = threading.Thread(
            target=self._rehearse, args=(named,), name="noonmark-rehearsal", daemon=True
        )
        begin.start()

    def _rehearse(self, works: Sequence[Named]) -> None:
        group = f"rehearsal-{SYSTEM.fresh_id()}"
        try:
            with Limit().of(partial(self.end, group), REHEARSAL_S), suppress(Interrupted):
                self.run(works, group)
        except Exception as error:  # nobody foresaw it: it has a number in the log
            defect.report(error, "a rehearsal")
        finally:
            with self._change:
                self._rehearsed -= {name for name, _ in works}

    def end(self, group: str) -> None:
        """End the works of a group, and with them their residents, which begin anew."""
        with self._change:
            ended = [each for each in self.residents if each.group == group]
            for each in ended:
                each.was_ended = True
                if each.line is not None:
                    each.line.shut()
        for each in ended:
            JOBS.end(lambda: self._spark, each.job_group)

    def _lend(self, names: Sequence[str], group: str) -> list[Share]:
        """Free residents with the works that each is to do; none if none gets free in time."""
        with self._change:
            self._change.wait_for(lambda: self._free() or not self._is_any_up(), self._wait_s)
            free = self._free()
            if not free:
                return []
            places: dict[Resident, list[int]] = {}
            for at, name in enumerate(names):
                places.setdefault(self._chosen(name, free, places), []).append(at)
            for each in places:
                each.group = group
            lent = ((each, each.line, its) for each, its in places.items())
            return [Share(each, line, its) for each, line, its in lent if line is not None]

    def _chosen(
        self, name: str, free: list[Resident], busy: Mapping[Resident, Sequence[int]]
    ) -> Resident:
        """Where a view goes: home; or to whom has least to do, which is its home if it has none."""
        home = self._homes.get(name)
        if home is not None and home in free:
            return home
        homes = Counter(self._homes.values())
        least = min(free, key=lambda each: (len(busy.get(each, ())), homes[each], each.number))
        if home is None or home.line is None:
            while len(self._homes) >= _HOMES_MAX:
                del self._homes[next(iter(self._homes))]
            self._homes[name] = least
        return least

    def _free(self) -> list[Resident]:
        return [each for each in self.residents if each.line is not None and each.group is None]

    def _is_any_up(self) -> bool:
        return any(each.line is not None for each in self.residents)

    def _send(self, share: Share, works: Sequence[Named]) -> bool:
        try:
            share.line.tell([works[at] for at in share.places])
        except LineLost:
            self._lost(share)
            return False
        return True

    def _received(self, share: Share) -> Made:
        try:
            return dict(zip(share.places, share.line.receive(), strict=True))
        except LineLost:
            self._lost(share)
            return {}

    def _lost(self, share: Share) -> None:
        with self._change:
            if share.resident.line is share.line:
                share.resident.line = None

    def _give_back(self, shares: Sequence[Share]) -> None:
        with self._change:
            for share in shares:
                share.resident.group, share.resident.was_ended = None, False
            self._change.notify_all()


def _nothing(given: Iterable[object]) -> Iterable[object]:
    """Runs on executors, where reading this module is what takes long."""
    return given


def _said(error: Exception) -> str:
    """Why a task ended, in one line: what Python said there, if it did."""
    text = str(error).strip()
    python = _PYTHON_ERROR.search(text)
    return python[0].strip() if python else text.partition("\n")[0]


def _count(spark: SparkSession) -> int:
    """How many residents a session has room for."""
    said = spark.sparkContext.getConf().get(RESIDENTS) or AUTOMATIC
    if said != AUTOMATIC:
        return max(0, int(said))
    cores = spark.sparkContext.defaultParallelism
    least = 0 if cores < 2 or _is_local(spark) else 1
    return max(cores // 4, least)


def _cores(spark: SparkSession) -> int:
    """The cores of the executors that are there; Spark itself never says less than two."""
    context = spark.sparkContext
    said = context.defaultParallelism
    if said > 2:
        return said
    scala = context._jsc.sc() if context._jsc is not None else None
    executors = 0 if scala is None else scala.getExecutorMemoryStatus().size() - 1
    return min(said, executors * int(context.getConf().get("spark.executor.cores") or 1))


def _is_local(spark: SparkSession) -> bool:
    """Whether tasks run in this process's own JVM."""
    return (spark.sparkContext.master or "").startswith("local[")
