"""Verification: every object of a location is read back and held against what the state says.

Log entries and rollups must carry their checksums; every part must match its checksum, hold as
many updates as the state says, at times within the bounds that the state says, in the order of
its shard's key, with the stated sum of diffs. What a check finds is a `Finding` that names the
object; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from noonmark.errors import IntegrityError, MissingObject
from noonmark.persist import run
from noonmark.persist.client import Client
from noonmark.persist.frame import ENTRY, ROLLUP, open_frame
from noonmark.persist.journal import ROLLUP_PREFIX
from noonmark.persist.order import in_order, plain_columns
from noonmark.persist.part import Part
from noonmark.persist.parts import PartStore
from noonmark.persist.state import Collection


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
    bytes: int = 0
    findings: tuple[Finding, ...] = ()

    def note(self, name: str, problem: str) -> None:
        """Add a finding."""
        self.findings = (*self.findings, Finding(name, problem))


Progress = Callable[[int, int], None]


async def verify(client: Client, progress: Progress) -> Report:
    """Check everything; `progress(done, total)` is told after each object. Runs on the loop."""
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
    await _verify_log(client, report, state.seqno)
    for collection, part in work:
        await _verify_part(client, report, collection, part)
        progress(done := done + 1, total)
    return report


def _check(report: Report, name: str, check: Callable[[], object]) -> None:
    try:
        check()
    except IntegrityError as error:
        report.note(name, error.detail or error.message)


async def _verify_log(client: Client, report: Report, head: int) -> None:
    """The entries that are still there, newest first, until the first one that was truncated."""
    for seqno in range(head, 0, -1):
        try:
            found = await client.consensus.read(seqno, 1)
        except MissingObject:
            return
        if not found:
            report.note(f"log/{seqno}", "the entry is missing")
            continue
        name = f"log/{seqno}"
        _check(report, name, lambda: open_frame(name, ENTRY, found[0]))  # noqa: B023
        report.entries += 1
        report.bytes += len(found[0])


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
