"""Snapshots of transactions: their ends, what was under way, and whether one had ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from noonmark.rows import types as t
from noonmark.rows.coded.lsn import Xid8
from noonmark.rows.coded.snapshots import PgSnapshot, Snapshot, TxidSnapshot
from noonmark.sql.functions.function import Function


def _xid(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _number(xid: bytes) -> int:
    return int.from_bytes(xid, "big")


def _same(number: int) -> int:
    return number


def _of(
    name: str,
    kind: type[t.Coded],
    number: type[t.SqlType],
    *,
    give: Callable[[int], object],
    visible: str,
    read: Callable[..., int],
) -> list[Function]:
    return [
        Function(f"{name}_xmin", (kind,), number(), lambda value: give(Snapshot.of(value).least)),
        Function(f"{name}_xmax", (kind,), number(), lambda value: give(Snapshot.of(value).end)),
        Function(
            visible,
            (number, kind),
            t.Boolean(),
            lambda which, value: Snapshot.of(value).has(read(which)),
        ),
    ]


TABLE = (
    *_of(
        "pg_snapshot",
        PgSnapshot,
        Xid8,
        give=_xid,
        visible="pg_visible_in_snapshot",
        read=_number,
    ),
    *_of(
        "txid_snapshot",
        TxidSnapshot,
        t.BigInt,
        give=_same,
        visible="txid_visible_in_snapshot",
        read=_same,
    ),
)


def _rows(give: Callable[[int], object]) -> Callable[[bytes], Iterator[tuple[object]]]:
    return lambda value: ((give(each),) for each in Snapshot.of(value).under_way)


ROWS = (
    Function("pg_snapshot_xip", (PgSnapshot,), Xid8(), _rows(_xid)),
    Function("txid_snapshot_xip", (TxidSnapshot,), t.BigInt(), _rows(_same)),
)
