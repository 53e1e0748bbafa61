"""What a client sees of a statement: names, types and text of its result, or its SQLSTATE.

Asked over PostgreSQL's protocol, in text format, of whichever server a connection is to. Nothing is
read into values, so nothing is forgiven: ``1.0`` is not ``1``.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY)
_NAMES = {
    16: "bool", 17: "bytea", 18: "char", 19: "name", 20: "int8", 21: "int2", 23: "int4",
    25: "text", 26: "oid", 114: "json", 700: "float4", 701: "float8", 705: "unknown",
    1042: "bpchar", 1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp",
    1184: "timestamptz", 1186: "interval", 1700: "numeric", 2249: "record", 2950: "uuid",
    3802: "jsonb", 2287: "record[]", 1000: "bool[]", 1005: "int2[]", 1007: "int4[]",
    1016: "int8[]", 1009: "text[]", 1021: "float4[]", 1022: "float8[]", 1231: "numeric[]",
    1182: "date[]", 1115: "timestamp[]", 1185: "timestamptz[]", 1183: "time[]", 1187: "interval[]",
    2951: "uuid[]", 3807: "jsonb[]", 1014: "bpchar[]", 1015: "varchar[]", 1001: "bytea[]",
    1560: "bit", 1561: "bit[]", 1562: "varbit", 1563: "varbit[]", 869: "inet", 1041: "inet[]",
    650: "cidr", 651: "cidr[]", 829: "macaddr", 774: "macaddr8", 3220: "pg_lsn", 5069: "xid8",
    3904: "int4range", 3905: "int4range[]", 3926: "int8range", 3906: "numrange",
    3912: "daterange", 3908: "tsrange", 3910: "tstzrange", 4451: "int4multirange",
    4536: "int8multirange", 4532: "nummultirange", 4535: "datemultirange", 4533: "tsmultirange",
    4534: "tstzmultirange", 4072: "jsonpath", 4073: "jsonpath[]",
    5038: "pg_snapshot", 2970: "txid_snapshot", 600: "point", 601: "lseg",
    602: "path", 603: "box", 604: "polygon", 628: "line", 718: "circle", 1017: "point[]",
    1020: "box[]",
}  # fmt: skip

_NUMERIC = 1700
_FIRST_MADE = 16_384

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Seen:
    """One result.

    Attributes:
        names: of the columns.
        types: their oids and typmods.
        rows: in the order in which they came.
        state: the SQLSTATE of an error; "" for none.
        message: what the error said.
        detail: what it said further.
    """

    names: tuple[str, ...] = ()
    types: tuple[tuple[int, int], ...] = ()
    rows: tuple[Row, ...] = ()
    state: str = ""
    message: str = ""
    detail: str = ""

    def text(self, *, ordered: bool = False) -> str:
        """As it stands in a file of cases."""
        if self.state:
            return f"error {self.state}"
        head = ", ".join(
            f"{name} {_name(oid)}{'' if mod < 0 else f'({mod})'}"
            for name, (oid, mod) in zip(self.names, self.types, strict=True)
        )
        lines = [" | ".join(map(_cell, row)) for row in self.rows]
        return "\n".join([head, *(lines if ordered else sorted(lines))])


def _name(oid: int) -> str | int:
    """A type; those that somebody made have other numbers on each server."""
    return "made" if oid >= _FIRST_MADE else _NAMES.get(oid, oid)


def _cell(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text.replace("\n", "\\n") if text else "''"


def seen(result: PGresult) -> Seen:
    """What a result says."""
    if result.status not in _FINE:
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"?????").decode()
        fields = (DiagnosticField.MESSAGE_PRIMARY, DiagnosticField.MESSAGE_DETAIL)
        message, detail = (
            (result.error_field(each) or b"").decode(errors="replace") for each in fields
        )
        return Seen(state=state, message=message, detail=detail)
    width = range(result.nfields)
    names = tuple((result.fname(at) or b"").decode() for at in width)
    types = tuple((result.ftype(at), _mod(result, at)) for at in width)
    cells = ((result.get_value(n, at) for at in width) for n in range(result.ntuples))
    rows = tuple(tuple(None if cell is None else cell.decode() for cell in row) for row in cells)
    return Seen(names, types, rows)


def _mod(result: PGresult, at: int) -> int:
    """A typmod; not that of numerics: how many digits an expression may have is told only here."""
    return -1 if result.ftype(at) == _NUMERIC else result.fmod(at)


def ask(connection: psycopg.Connection, sql: str) -> Seen:
    """One statement, by the simple protocol."""
    return seen(connection.pgconn.exec_(sql.encode()))
