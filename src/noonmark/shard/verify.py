"""Verification: every object of a location is read back and held against what the state says.

Log entries and rollups must carry their checksums, those of the oracle's log, too; no entry may be
missing between the oldest and the newest that was noted; markers are empty, and there where they
must be; every part must match its checksum, hold as many updates as the state says, at times within
the bounds that the state says, in the order of its shard's key, with the stated sum of diffs. What
a check finds is a `Finding` that names the object.

What belongs to nobody is named as well (`Report.unclaimed`): parts that no commit names, entries
that were truncated and not deleted, objects of other programs. It harms nobody. Garbage that waits
for its readers, and parts that the present writer has stored and not committed yet, are claimed.
``writer.lock`` has the writer's name for people, and is not read back.

Nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow.compute as pc

from noonmark.errors import IntegrityError, MissingObject
from noonmark.oracle.reserved import decode_reservation
from noonmark.persist.client import Client
from noonmark.persist.location import Consensus
from noonmark.persist.log.frame import ENTRY, ROLLUP, open_frame
from noonmark.persist.log.head import check_tail
from noonmark.persist.log.journal import ROLLUP_PREFIX
from noonmark.persist.log.state import Collection
from noonmark.persist.part import run
from noonmark.persist.part.order import in_order, plain_columns
from noonmark.persist.part.part import Part
from noonmark.persist.part.store import PartStore, epoch_prefix
from noonmark.progress import Progress


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    object: str
    problem: str


@dataclass
class Report:
    """What was checked and what was found."""

    entries: int = 0
    rollups: int = 0
    parts: int = 0
    updates: int = 0
    oracle_entries: int = 0
    bytes: int = 0
    unclaimed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def note(self, name: str, problem: str) -> None:
        """Add a finding."""
        self.findings = (*self.findings, Finding(name, problem))


async def verify(client: Client, oracle: Consensus | None, progress: Progress) -> Report:
    """Check everything; `progress(done, total)` is told after each object. Runs on the loop.

    Args:
        client: of the location.
        oracle: the log of its oracle; None where there is none.
        progress: told of objects that are done, and of all.
    """
    report = Report()
    state = client.state
    rollups = await client.blob.list(ROLLUP_PREFIX)
    work = [(c, p) for c in state.collections.values() for b in c.batches for p in b.parts]
    total, done = len(rollups) + len(work), 0
    for rollup in rollups:
        data = await client.blob.get(rollup.key)
        if data is not None:
            _check(report, rollup.key, lambda: open_frame(rollup.key, ROLLUP, data))  # noqa: B023
            report.rollups += 1
            report.bytes += len(data)
        progress(done := done + 1, total)
    await _verify_log(client.consensus, report, "log", state.seqno)
    noted = oracle is not None and await _verify_oracle(oracle, report)
    await _verify_keys(client, report, oracle_notes=noted)
    for collection, part in work:
        await _verify_part(client, report, collection, part)
        progress(done := done + 1, total)
    return report


def _check(report: Report, name: str, check: Callable[[], object]) -> None:
    try:
        check()
    except IntegrityError as error:
        report.note(name, error.detail or error.message)


async def _verify_log(log: Consensus, report: Report, kind: str, head: int) -> int:
    """The entries that are still there, newest first, until the first one that was truncated."""
    entries = 0
    for seqno in range(head, 0, -1):
        try:
            found = await log.read(seqno, 1)
        except MissingObject:
            break
        name = f"{kind}/{seqno}"
        if not found:
            report.note(name, "the entry is missing")
            continue
        _check(report, name, lambda: open_frame(name, ENTRY, found[0]))  # noqa: B023
        entries += 1
        report.bytes += len(found[0])
    report.entries += entries if kind == "log" else 0
    return entries


async def _verify_oracle(log: Consensus, report: Report) -> bool:
    """The oracle's log; whether whoever wrote to it last notes how far it is."""
    noted, head = await log.noted(), await log.head()
    _check(report, "oracle", lambda: check_tail("oracle", noted, head))
    report.oracle_entries = await _verify_log(log, report, "oracle", max(noted, head))
    with suppress(IntegrityError):  # a finding already, or all of the log is cut
        newest = await log.read(head, 1) if head else []
        return bool(newest) and decode_reservation(head, newest[0]).noted
    return False


async def _verify_keys(client: Client, report: Report, *, oracle_notes: bool) -> None:
    """Markers, and what belongs to nobody; looked at before the state that must name it."""
    keys = await client.blob.list("")
    state = await client.journal.refresh()
    names = {entry.key for entry in keys}
    folders = {name.rpartition("/")[0] for name in names}
    log_notes = state.lock is not None and state.lock.noted
    for notes, folder in ((log_notes, ""), (oracle_notes, "oracle/")):
        if notes and f"{folder}log" in folders and f"{folder}count" not in folders:
            report.note(f"{folder}count/", "the note of how far the log is is missing")
    _check_floor(report, names, "")
    _check_rollup(report, names)
    _check_floor(report, names, "oracle/")
    for key, size in keys:
        if _MARKER.fullmatch(key) and size:
            report.note(key, f"a marker has no contents, and this one has {size} bytes")
    claimed = {part.key for ref in state.collections for part in _parts(client, ref)}
    claimed |= {garbage.key for garbage in state.garbage}
    own = epoch_prefix(state.epoch)
    report.unclaimed = tuple(
        name
        for name in sorted(names - claimed)
        if not _KNOWN.fullmatch(name) and not name.startswith(own)
    )


def _check_floor(report: Report, names: set[str], folder: str) -> None:
    """Entries do not begin after the first unless a marker says so."""
    first = min((n for n in names if n.startswith(f"{folder}log/")), default=None)
    begins_late = first is not None and int(first[-20:]) > 1
    if begins_late and not any(name.startswith(f"{folder}floor/") for name in names):
        report.note(f"{folder}floor/", "the marker of where the log begins is missing")


def _check_rollup(report: Report, names: set[str]) -> None:
    """A log is cut behind a rollup, which stays until it is cut behind a later one."""
    floor = max((name for name in names if name.startswith("floor/")), default=None)
    if floor is None:
        return
    needed = f"{ROLLUP_PREFIX}{int(floor[-20:]) - 1:020d}"
    if needed not in names:
        report.note(needed, "the state that the log begins with is missing")


#: Where markers are, and what is looked at by its name.
_MARKER = re.compile(r"(oracle/)?(floor|count)/\d{20}")
_KNOWN = re.compile(r"(oracle/)?(log|floor|count)/\d{20}|rollup/\d{20}|(oracle/)?writer\.lock")


async def _verify_part(client: Client, report: Report, collection: Collection, part: Part) -> None:
    try:
        data = await client.parts.fetch(part)
        await client.runtime.offload(_inspect, report, collection, part, data)
    except IntegrityError as error:
        current = client.state.collections.get(collection.id)
        gone = isinstance(error, MissingObject)
        await client.journal.refresh()
        if gone and (current is None or part not in _parts(client, collection.id)):
            return  # the writer compacted it away while we looked
        report.note(part.key, error.detail or error.message)


def _parts(client: Client, collection: int) -> set[Part]:
    found = client.state.collections.get(collection)
    return {p for b in found.batches for p in b.parts} if found else set()


def _inspect(report: Report, collection: Collection, part: Part, data: bytes) -> None:
    table = PartStore.decode(part, data, None)
    times = pc.min_max(table.column(run.TIME))
    facts = (
        ("the number of updates", table.num_rows, part.rows),
        ("the earliest time", times["min"].as_py(), part.time_min),
        ("the latest time", times["max"].as_py(), part.time_max),
        ("the sum of diffs", pc.sum(table.column(run.DIFF)).as_py(), part.diff_sum),
    )
    for what, found, stated in facts:
        if found != stated:
            report.note(part.key, f"{what} is {found}, the state says {stated}")
    names = [*run.data_order(table, collection.key), run.TIME]
    if not in_order(plain_columns(table.combine_chunks(), names)):
        report.note(part.key, "the updates are not in the order of the key")
    report.parts += 1
    report.updates += table.num_rows
    report.bytes += len(data)
