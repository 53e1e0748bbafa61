"""Rows that are at hand, by key.

Law: ``matching(rows, key, probes)`` are all pairs (i, row) such that the row's key has the values
of probe i; NULL equals NULL.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.kernel import index as ix
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.updates import Ints, Rows
from noonmark.rows.arrow import arrow_type
from noonmark.rows.types import SqlType
from noonmark.sql.ir.scalar import Scalar


def matching(rows: Rows, key: tuple[Scalar, ...], probes: Sequence[pa.Array]) -> Found:
    """Pairs of a probe and a row of these."""
    probes, fine = fitted(probes, [part.type for part in key])
    values, _ = values_of(key, rows)
    found = ix.build(values, len(rows))
    given, at = ix.matches(found, ix.hashes_of(probes, len(probes[0])))
    taken = [value.take(pa.array(at)) for value in values]
    asked = [probe.take(pa.array(given)) for probe in probes]
    same = ix.same(taken, asked, len(given))
    places = given[same]
    return (places if fine is None else fine[places]), rows.take(at[same])


def fitted(
    probes: Sequence[pa.Array], kinds: Sequence[SqlType]
) -> tuple[list[pa.Array], Ints | None]:
    """The probes as the types of the key have them; a value that none of them has is left out."""
    wanted = [arrow_type(kind) for kind in kinds]
    try:
        return [p if p.type == w else p.cast(w) for p, w in zip(probes, wanted, strict=True)], None
    except pa.ArrowInvalid:
        return _one_by_one(probes, wanted)


def _one_by_one(
    probes: Sequence[pa.Array], wanted: Sequence[pa.DataType]
) -> tuple[list[pa.Array], Ints]:
    fine = []
    for row in range(len(probes[0])):
        try:
            for probe, kind in zip(probes, wanted, strict=True):
                probe.slice(row, 1).cast(kind)
        except pa.ArrowInvalid:
            continue
        fine.append(row)
    places = np.array(fine, np.int64)
    return [p.take(pa.array(places)).cast(w) for p, w in zip(probes, wanted, strict=True)], places
