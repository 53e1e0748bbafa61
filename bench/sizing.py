"""The terms of the sizing model, measured, and what they give for a location of any size.

    python -m bench.sizing --rows 1000000 --parts 20000

The model (docs/operate/size.md) is a handful of products. What it needs to know is measured here:
bytes of a stored row, bytes and time of a part in the state that every server holds, and what a
commit costs as the state grows. The rest are settings of the code.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.persist.config import DEFAULT
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.log import command as c
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import encoder, state_decoder
from noonmark.persist.retry import Retries
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain
from support.store.long_log import grow

_COMMITS = 200


def main(argv: Sequence[str]) -> dict[str, float]:
    """Measure every term and print it, with the model for 1 TB, 100 TB and 1 PB."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", type=int, default=20_000)
    chosen = parser.parse_args(list(argv))
    terms = {**stored_row(chosen.rows, chosen.seed), **state_of(chosen.parts)}
    for name, value in terms.items():
        print(f"{name:40} {value:,.4g}")
    for terabytes in (1, 100, 1_000):
        print(f"\n{terabytes} TB:")
        for name, value in model(terabytes * 1e12, terms).items():
            print(f"  {name:38} {value:,.4g}")
    return terms


def stored_row(rows: int, seed: int) -> dict[str, float]:
    """Bytes of a row of an identifier, a random text and a number, as it is stored."""
    random = Random(seed)
    schema = Schema.of(id="bigint", name="text", price="double precision")
    with tempfile.TemporaryDirectory() as folder, persist.open(folder) as client:
        write, _ = client.create_or_load("t", schema, ("id",))
        step = 100_000
        for low in range(0, rows, step):
            numbers = range(low, min(rows, low + step))
            write.write(
                [persist.Update((n, f"{random.getrandbits(96):x}", random.random()), 0, 1)
                 for n in numbers]
            )  # fmt: skip
        write.seal(1).result(600)
        stored = client.state.collection("t")
        return {"bytes of a stored row": sum(each.bytes for each in stored.batches) / rows}


def state_of(parts: int) -> dict[str, float]:
    """What a part costs in the state, and what a commit costs as there are more of them."""
    few, many = grow("few", 100, 500), grow("many", parts, 2_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = SYSTEM.monotonic()
    data = encoder.encode(many)
    encoded = SYSTEM.monotonic()
    copies = [state_decoder.decode(data) for _ in range(3)]
    decoded = SYSTEM.monotonic()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "bytes of a part in a rollup": len(data) / parts,
        "bytes of a part in memory": 1024 * grown / len(copies) / parts,
        "seconds to write a rollup, per part": (encoded - began) / parts,
        "seconds to open, per part": (decoded - encoded) / len(copies) / parts,
        "ms of a commit, 100 parts": 1e3 * _commit("few", few.seqno),
        f"ms of a commit, {parts:,} parts": 1e3 * _commit("many", many.seqno),
    }


def _commit(name: str, seqno: int) -> float:
    """Seconds of an empty commit of one collection, in memory: what the state itself costs."""

    async def run() -> float:
        blob = MemoryBlob(name)
        journal = Journal(blob, BlobConsensus(blob), SYSTEM, DEFAULT, Retries(SYSTEM, DEFAULT))
        await journal.load()
        began = SYSTEM.monotonic()
        for number in range(_COMMITS):
            seal = c.Seal(1, Antichain.of(seqno + 10 + number))
            (outcome,) = await journal.commit(1, [(seal,)])
            if outcome.error is not None:
                raise outcome.error
        return (SYSTEM.monotonic() - began) / _COMMITS

    return asyncio.run(run())


def model(stored_bytes: float, terms: dict[str, float]) -> dict[str, float]:
    """What a location of so many stored bytes asks of the server that writes."""
    rows = stored_bytes / terms["bytes of a stored row"]
    parts = rows / DEFAULT.part_rows_max
    return {
        "rows": rows,
        "parts of the largest size": parts,
        "GB of state in each server": parts * terms["bytes of a part in memory"] / 1e9,
        "GB of a rollup": parts * terms["bytes of a part in a rollup"] / 1e9,
        "seconds to write a rollup": parts * terms["seconds to write a rollup, per part"],
        "seconds to open": parts * terms["seconds to open, per part"],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
