"""Figure C4, of a whole location: whatever is done to any object of it, `shard verify` says so.

A location is made as users make one: a server's, with a catalog, tables, parts, rollups, a log that
was cut, and the log of the oracle. One object is changed (a bit flipped, cut, emptied, extended,
two swapped) or taken away; the location is opened and verified; then the object is put back.

Law: opening it fails with an `IntegrityError`, or the verification names a changed object. Only the
newest rollup may be taken away in silence, because all that it says is in the log, too: then every
table has the rows that it had.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from noonmark import persist
from noonmark.adapter.location import oracle_log
from noonmark.errors import IntegrityError
from noonmark.oracle import reserved
from noonmark.shard.verify import Finding, verify
from support.serve.reading import connect, database
from support.store.history import Violation
from support.store.mutations import CHANGES

#: So small that every kind of object is there after few statements.
CONFIG = persist.Config(inline_bytes_max=400, rollup_entries=9, merge_fan_in=100)
ROUNDS = 12


async def build(folder: Path, seed: int) -> None:
    """A location of a server that was started twice."""
    random = Random(f"damage/{seed}")
    options = persist.Options(config=CONFIG, notify_host=None)
    for life in range(2):
        async with database(str(folder), options=options) as opened:
            client = await connect(opened)
            await client.ask(f"create table t{life} (k int, v text, primary key (k))")
            await client.ask(f"create view v{life} as select k from t{life}")
            for number in range(ROUNDS):
                text = f"{random.getrandbits(512):x}" * random.choice((1, 8))
                await client.ask(f"insert into t{life} values ({number}, '{text}')")
                await opened.oracle.apply_write(await opened.oracle.write_ts() + reserved.RANGE_MS)


@dataclass
class Damage:
    """One location, damaged again and again."""

    folder: Path
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = Random(f"damages/{self.seed}")
        self._root, self._moves = self.folder / "whole-0", 0
        with patch.object(reserved, "_TRUNCATE_EVERY", 8):
            asyncio.run(build(self._root, self.seed))
        paths = [p for p in self._root.rglob("*") if p.is_file() and p.name != "writer.lock"]
        self.bytes = {str(p.relative_to(self._root)): p.read_bytes() for p in paths}
        self.kinds: dict[str, list[str]] = {}
        for name in sorted(self.bytes):
            kind = (
                "oracle " + name.split("/")[1] if name.startswith("oracle/") else name.split("/")[0]
            )
            self.kinds.setdefault(kind, []).append(name)
        found, self._rows = self._look()
        if found or self._rows is None:
            raise Violation(f"nothing was changed, and yet {found}")

    def damage(self) -> None:
        """Change one object by chance, or two; look; put it back."""
        kind = self._random.choice(sorted(self.kinds))
        name = self._random.choice(self.kinds[kind])
        how, changed = self._change(kind, name)
        self.try_with(f"{kind} {how}", changed)

    def try_with(self, how: str, changed: dict[str, bytes | None]) -> None:
        """Put other bytes in place of some objects, or nothing; look; put them back."""
        self._moves += 1
        moved = self.folder / f"whole-{self._moves}"  # so that nobody remembers the location
        self._root = self._root.rename(moved)
        try:
            for name, data in changed.items():
                if data is None:
                    (self._root / name).unlink()
                else:
                    (self._root / name).write_bytes(data)
            found, rows = self._look()
        finally:
            for name in changed:
                (self._root / name).write_bytes(self.bytes[name])
        self.faults[how] += 1
        redundant = changed == {self.kinds["rollup"][-1]: None}
        if not found and not (redundant and rows == self._rows):
            raise Violation(f"seed {self.seed}: {how} of {sorted(changed)} went unseen")
        self.outcomes["noticed" if found else "not needed"] += 1

    def _change(self, kind: str, name: str) -> tuple[str, dict[str, bytes | None]]:
        random, data = self._random, self.bytes[name]
        others = [each for each in self.kinds[kind] if self.bytes[each] != data]
        ways = ["extend", "remove"] + ["swap"] * bool(others)
        how = random.choice(ways + ["flip", "flip", "cut", "empty"] * bool(data))
        if how == "swap":
            other = random.choice(others)
            return how, {name: self.bytes[other], other: data}
        return how, {name: None if how == "remove" else CHANGES[how](data, random)}

    def _look(self) -> tuple[list[Finding], dict[str, int] | None]:
        """What verification finds, and how many rows each collection has."""
        options = persist.Options(mode="independent")
        try:
            client = persist.open(self._root, options=options)
        except IntegrityError as error:
            return [Finding(str(error.fields.get("object")), error.message)], None
        with client:
            oracle = oracle_log(str(self._root), None)
            report = client.runtime.submit(verify(client, oracle, lambda *_: None)).result()
            if report.findings:
                return list(report.findings), None
            sizes = {
                name: len(read.snapshot((read.upper.only() or 1) - 1).result().counts())
                for name in client.state.names
                if (read := client.create_or_load(name)[1]).upper != read.since
            }
        return [], sizes
