"""The wire formats against a real PostgreSQL: it reads what we write and writes what we would."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.pq import ExecStatus

from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows.jsonb import canonical
from noonmark.rows.postgres import (
    decode_binary,
    decode_text,
    encode_binary,
    encode_text,
    oid,
    type_of,
    type_size,
    typmod,
)
from support.neighbour.servers import PostgresServer
from support.store.rows import JSON_TREES, OWN_TYPES, same, values

TEXT, BINARY = 0, 1
ENCODE = {TEXT: encode_text, BINARY: encode_binary}
DECODE = {TEXT: decode_text, BINARY: decode_binary}


class Postgres:
    """One connection that echoes values through a cast to a type."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.names: dict[t.SqlType, str] = {}

    def name(self, sql_type: t.SqlType) -> str:
        """PostgreSQL's name for the type; records get a named composite type."""
        match sql_type:
            case t.Array(element):
                return f"{self.name(element)}[]"
            case t.Record(fields):
                if sql_type not in self.names:
                    columns = ", ".join(f'"{f.name}" {self.name(f.type)}' for f in fields)
                    self.names[sql_type] = name = f"record_{len(self.names)}"
                    self.connection.execute(f"CREATE TYPE {name} AS ({columns})")
                return self.names[sql_type]
        return str(sql_type)

    def query(self, sql: str, parameters: list[bytes | None], into: int, form: int = TEXT) -> Any:
        formats = [form] * len(parameters)
        return self.connection.pgconn.exec_params(sql.encode(), parameters, None, formats, into)

    def echo(self, raw: bytes | None, sql_type: t.SqlType, form: int, into: int) -> bytes | None:
        """What PostgreSQL makes of the bytes."""
        result = self.query(f"SELECT $1::{self.name(sql_type)}", [raw], into, form)
        assert result.status == ExecStatus.TUPLES_OK, (result.error_message, raw)
        return result.get_value(0, 0)

    def read(self, text: str, sql_type: t.SqlType) -> bytes | None:
        """PostgreSQL's canonical text of a literal; None when it refuses the literal."""
        name = self.name(sql_type)
        # Asked first, because an explicit cast to varchar(n) cuts what an assignment refuses.
        valid = self.query(f"SELECT pg_input_is_valid($1, '{name}')", [text.encode()], TEXT)
        if valid.get_value(0, 0) == b"f":
            return None
        return self.query(f"SELECT $1::text::{name}", [text.encode()], TEXT).get_value(0, 0)


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[Postgres]:
    options = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres"
    with psycopg.connect(postgres_server.dsn, autocommit=True, options=options) as connection:
        yield Postgres(connection)


@pytest.mark.parametrize("sql_type", OWN_TYPES, ids=str)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_postgres_reads_and_writes_the_same_bytes(
    postgres: Postgres, sql_type: t.SqlType, data: st.DataObject
) -> None:
    value = data.draw(st.none() | values(sql_type))
    for form in (TEXT, BINARY):
        raw = ENCODE[form](value, sql_type)
        for into in (TEXT, BINARY):
            echoed = postgres.echo(raw, sql_type, form, into)
            if not (into == BINARY and _array_of_record(sql_type)):
                assert echoed == ENCODE[into](value, sql_type)
                assert same(DECODE[into](echoed, sql_type), value)


def _array_of_record(sql_type: t.SqlType) -> bool:
    """Its binary form carries the oid of the element, which only that database knows."""
    return isinstance(sql_type, t.Array) and isinstance(sql_type.element, t.Record)


LITERALS: dict[str, list[str]] = {
    "boolean": ["t", " TRUE ", "yes", "on", "1", "off", "of", "n", "o", "tru", "2", ""],
    "smallint": [" 7 ", "+7", "-32768", "32768", "1.0", "", "0x1F g", "٣"],
    "bigint": ["9223372036854775807", "9223372036854775808", "1" * 2000, "--1"],
    "real": [
        "1e38",
        "1e39",
        "1e-46",
        "NaN",
        "-inf",
        "0.1",
        "16777217",
        "3.4028235e38",
        "1_0",
        "abc",
    ],
    "double precision": [
        "1e308",
        "1e309",
        "1e-400",
        "0e-400",
        "Infinity",
        "+Inf",
        " 1.5 ",
        "5e-324",
        ".5",
        "5.",
    ],
    "numeric": ["1e5", "-0", "-0.00", "1.50", ".5", "5.", "+1", "1e-18", "abc", "1..2", ""],
    "numeric(5,2)": ["1.005", "1.015", "-1.005", "999.994", "999.995", "1e-900", "1e900", "0.5e1"],
    "varchar(3)": ["abc", "abc  ", "abcd", "é é", ""],
    "char(3)": ["a", "abc   ", "abcd", ""],
    "bytea": ["\\x00ff", "\\xABcd", "\\x 12 34", "a\\\\b\\001", "\\x1", "\\8", "plain"],
    "date": [
        "2024-02-29",
        "2023-02-29",
        "2024-13-01",
        "0001-01-01 BC",
        "infinity",
        "-Infinity",
        "epoch",
        "2024-1-5",
        "4713-11-24 BC",
        "4713-11-23 BC",
        "5874897-12-31",
        "5874898-01-01",
        "0000-01-01",
        "2024-01-05 23:59:59",
        "2024-01-05T10:00:00Z",
        "20x4-01-01",
    ],
    "time": [
        "24:00:00",
        "24:00:01",
        "23:59:60",
        "1:2:03",
        "04:05",
        "04:05:06.1234567",
        "25:00",
        "04:60",
    ],
    "timestamp": [
        "2024-02-29 12:34:56.789",
        "2024-02-29T12:34",
        "2024-02-29",
        "infinity",
        "epoch",
        "2024-02-29 24:00:00",
        "2024-02-29 12:34:56+05",
        "0044-03-15 10:00:00 BC",
        "4713-11-24 00:00:00 BC",
        "1999-12-31 23:59:59.9999999",
        "2024-02-29 12:34:56.0000005",
    ],
    "timestamptz": [
        "2024-02-29 12:34:56Z",
        "2024-02-29 12:34:56+05:30",
        "2024-02-29 12:34:56-0330",
        "-infinity",
        "2024-02-29 12:34:56 +02",
        "0044-03-15 10:00:00+01 BC",
        "2024-02-29T12:34:56.5-03:30:15",
        "2024-02-29 12:34:56+16",
        "2024-02-29 12:34:56",
    ],
    "interval": [
        "1 year 2 months 3 days 04:05:06.789",
        "-1 mon +2 days",
        "1-2",
        "3 4:05:06",
        "5",
        "1.5 days",
        "1.5 weeks",
        "1.5 months",
        "1.5 years",
        "@ 1 hour ago",
        "2 hrs 30 mins",
        "P1Y2M3DT4H5M6.5S",
        "PT36H",
        "P1W",
        "P0.5M",
        "infinity",
        "-infinity",
        "1.5 hours 0.25 min",
        "10 msec",
        "1 decade",
        "1 fortnight",
        "",
        "ago",
        "1:2",
        "-1:30",
        "1 day -00:00:01",
        "3 us",
        "0.1 months",
        "1 century",
    ],
    "uuid": [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0eebc99",
        "",
    ],
    "jsonb": [
        '{"b":1,"a":2,"b":3}',
        '{"aa":1,"b":2,"":3}',
        "1e2",
        "-0",
        "-0.0",
        "0e5",
        "0e-3",
        "1.10",
        "[ ]",
        '"\\u00e9\\/"',
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\u0000"',
        "NaN",
        "01",
        "+1",
        "[1,]",
        "",
        '"\\u007f\\u0001"',
        '{"é":1,"zz":2,"z":3}',
        " null ",
        "nul",
        '{"a" : {"c":[1,2,{"d":null}]}}',
    ],
    "integer[]": ["{}", "{1,NULL,2}", " { 1 , 2 } ", "{1,}", "{1", "1", '{"3"}', "{null}", "{1}x"],
    "text[]": [
        "{a b , c}",
        '{"NULL",null}',
        '{"a\\"b",a\\,b}',
        '{""}',
        "{,}",
        '{a"b}',
        "{a\\ }",
        '{"a" b}',
    ],
}


@pytest.mark.parametrize("spelling", list(LITERALS))
def test_literals_mean_what_postgres_takes_them_for(postgres: Postgres, spelling: str) -> None:
    sql_type = t.parse_type(spelling)
    for literal in LITERALS[spelling]:
        try:
            ours = encode_text(decode_text(literal.encode(), sql_type), sql_type)
        except InvalidValue:
            ours = None
        theirs = postgres.read(literal, sql_type)
        if spelling == "numeric" and theirs is not None:
            theirs = encode_text(decode_text(theirs, sql_type), sql_type)
        assert ours == theirs, literal


@settings(max_examples=200)
@given(tree=JSON_TREES)
def test_json_trees_are_canonical_as_in_postgres(postgres: Postgres, tree: Any) -> None:
    loose = json.dumps([tree], default=str)
    assert canonical(loose).encode() == postgres.read(loose, t.Jsonb())


@pytest.mark.parametrize("sql_type", [t.Real(), t.Double()], ids=str)
def test_floats_at_powers_have_the_digits_of_postgres(
    postgres: Postgres, sql_type: t.SqlType
) -> None:
    """There the interval that rounds to a float is lopsided, or ends on a short decimal."""
    single = sql_type == t.Real()
    exponents = range(-149, 128) if single else range(-1074, 1024)
    powers = [2.0**e for e in exponents] + [float(f"1e{e}") for e in range(-37, 38)]
    numbers = [_narrow(n) if single else n for n in powers]
    for number in list(numbers):
        numbers += [_step(number, direction, single) for direction in (-1, 1)]
    raw = encode_binary(numbers, t.Array(sql_type))
    echoed = postgres.echo(raw, t.Array(sql_type), BINARY, TEXT)
    assert echoed == encode_text(numbers, t.Array(sql_type))
    assert same(decode_text(echoed, t.Array(sql_type)), numbers)


def _narrow(number: float) -> float:
    return float(np.float32(number))


def _step(number: float, direction: int, single: bool) -> float:
    kind = np.float32 if single else np.float64
    return float(np.nextafter(kind(number), kind(direction * 3e38)))


@pytest.mark.parametrize("sql_type", [s for s in OWN_TYPES if "record" not in str(s)], ids=str)
def test_catalog_numbers_are_those_of_postgres(postgres: Postgres, sql_type: t.SqlType) -> None:
    result = postgres.query(f"SELECT NULL::{sql_type}", [], TEXT)
    described = (result.ftype(0), result.fsize(0), result.fmod(0))
    assert described == (oid(sql_type), type_size(sql_type), typmod(sql_type))
    assert type_of(oid(sql_type), typmod(sql_type)) == sql_type
    name = postgres.query(
        "SELECT format_type($1::oid, $2)", [b"%d" % described[0], b"%d" % described[2]], TEXT
    )
    assert name.get_value(0, 0) == str(sql_type).encode()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns", "Europe/Amsterdam"])
@given(value=st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2037, 1, 1)))
def test_instants_are_shown_in_the_zone_of_the_session(
    postgres: Postgres, zone: str, value: dt.datetime
) -> None:
    # Before and after those years, copies of the zone database differ.
    value = value.replace(tzinfo=dt.UTC)
    postgres.connection.execute(f"SET timezone = '{zone}'")
    try:
        theirs = postgres.echo(encode_binary(value, t.TimestampTz()), t.TimestampTz(), BINARY, TEXT)
    finally:
        postgres.connection.execute("SET timezone = 'UTC'")
    ours = encode_text(value, t.TimestampTz(), ZoneInfo(zone))
    assert ours == theirs
    assert decode_text(ours, t.TimestampTz(), ZoneInfo(zone)) == value
