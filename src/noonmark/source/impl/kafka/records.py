"""The records of one partition up to an offset, as Arrow: the hot path of FROM KAFKA.

Law (range): every record below `stop` is in one batch, in order of offset; no other is in any. It
ends at a record at or beyond `stop - 1`, or at the partition's end: a partition may end in offsets
without a record, and then only its end tells that all were read.

The client has an object for each record. Each field is taken from all objects of a batch by one
call that does not come back to Python between them: a statement per record costs more than to
decode it.

Where it runs: executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, Message

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import SourceStalled
from noonmark.source.contract import HEADERS, Split, points
from noonmark.source.impl.kafka.client import received

BATCH_RECORDS = 16_384
_SILENT_S = 30.0

Longs = npt.NDArray[np.int64]


def batches(
    consumer: Any, split: Split, schema: pa.Schema, clock: Clock = SYSTEM
) -> Iterator[pa.RecordBatch]:
    """The records of a split, whose partition has been assigned from some offset of it on."""
    gathered: list[Any] = []
    heard = clock.monotonic()
    done = False
    while not done:
        records, done = _next(consumer, split.upper)
        now = clock.monotonic()
        if records or done:
            heard = now
        elif now - heard > _SILENT_S:
            raise SourceStalled("Kafka sends nothing")
        gathered += records
        if len(gathered) >= BATCH_RECORDS or (done and gathered):
            yield batch_of(split, gathered, schema)
            gathered = []


def _next(consumer: Any, stop: int) -> tuple[list[Any], bool]:
    """The next records below an offset, and whether there are no more of them."""
    records, done = received(consumer), False
    if any(map(Message.error, records)):
        for each in records:
            error = each.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise SourceStalled(f"Kafka does not give its records: {error.str()}")
            done = done or (error is not None and each.offset() >= stop)
        records = [each for each in records if each.error() is None]
    if records and records[-1].offset() >= stop - 1:
        return records[: int(np.searchsorted(_offsets(records), stop))], True
    return records, done


def batch_of(split: Split, records: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Records of a split as one batch."""
    arrays = [
        *points("number", split.partition, _offsets(records), 0),
        pa.array(list(map(Message.key, records)), pa.binary()),
        pa.array(list(map(Message.value, records)), pa.binary()),
        _timestamps(records),
        _headers(records),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _offsets(records: list[Any]) -> Longs:
    return np.fromiter(map(Message.offset, records), np.int64, len(records))


def _timestamps(records: list[Any]) -> pa.Array:
    """Microseconds; NULL for a record of a time when Kafka had none."""
    pairs = chain.from_iterable(map(Message.timestamp, records))
    kinds, stamps = np.fromiter(pairs, np.int64, 2 * len(records)).reshape(-1, 2).T
    return pa.array(stamps * 1000, mask=kinds == 0).cast(pa.timestamp("us", "UTC"))


def _headers(records: list[Any]) -> pa.Array:
    if not any(map(Message.headers, records)):
        return pa.nulls(len(records), HEADERS)
    return pa.array([each.headers() for each in records], HEADERS)
