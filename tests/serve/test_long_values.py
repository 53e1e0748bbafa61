"""Long values are written and read beside the loop: `noonmark.serve.beside`.

Measured is the processor time of the loop's own thread in each callback, as in
`tests/adapter/test_loop_share.py`; and the values are what they are.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.pq import ExecStatus

from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows.coded.lsn import Xid8
from noonmark.rows.pg.text import parse_value
from noonmark.serve.beside import PIECES_MAX, is_long
from support.house.longest_piece import longest_piece
from support.serve.host import DatabaseHost

pytestmark = pytest.mark.alone

COUNT = 20_000
#: What is written of each takes a tenth of a second and more.
LONG = {
    "times": f"select array_agg(timestamptz '2020-01-01' + g * interval '1s') "
    f"from generate_series(1, {COUNT}) g",
    "numbers": f"select array_agg(g::numeric / 7) from generate_series(1, {COUNT}) g",
    "ranges": f"select range_agg(int4range(2 * g, 2 * g + 1)) from generate_series(1, {COUNT}) g",
    "points": f"select path(polygon({COUNT}, circle '((0,0),5)'))",
    "many": "select array_agg(g) over () from generate_series(1, 600) g",
    "kept": "select a from kept where k = 1",
}
PIECE_MAX_S = 0.06


@pytest.fixture(scope="module")
def host() -> Iterator[DatabaseHost]:
    made = DatabaseHost()
    with psycopg.connect(made.dsn(), autocommit=True) as client:
        client.execute("create table kept (k int primary key, a timestamptz[])")
        client.execute(
            "insert into kept select 1, array_agg(timestamptz '2020-01-01' + g * interval '1s') "
            f"from generate_series(1, {COUNT}) g".encode()
        )
        for sql in LONG.values():  # whatever is made and read once
            client.pgconn.exec_(sql.encode())
    yield made
    made.close()


@pytest.mark.parametrize("name", sorted(LONG))
@pytest.mark.parametrize("way", ["text", "binary", "copy"])
def test_no_value_has_the_loop(host: DatabaseHost, name: str, way: str) -> None:
    with psycopg.connect(host.dsn(), autocommit=True) as client, longest_piece() as piece:
        if way == "copy":
            with client.cursor() as cursor, cursor.copy(f"copy ({LONG[name]}) to stdout") as copy:  # type: ignore[call-overload]
                assert sum(len(data) for data in copy) > 100_000
        else:
            sent = LONG[name].encode()
            asked = client.pgconn.exec_params(sent, [], result_format=int(way == "binary"))
            assert asked.status == ExecStatus.TUPLES_OK
            value = asked.get_value(0, 0)
            assert value is not None
            assert len(value) > 2_000
    assert piece[0] < PIECE_MAX_S


def test_nor_over_http(host: DatabaseHost) -> None:
    with longest_piece() as piece:
        client = http.client.HTTPConnection(host.http, timeout=60)
        body = json.dumps({"query": LONG["times"]})
        client.request("POST", "/api/sql", body, {"Content-Type": "application/json"})
        (result,) = json.loads(client.getresponse().read())["results"]
        client.close()
    assert len(result["rows"][0][0]) == COUNT
    assert piece[0] < PIECE_MAX_S


@pytest.mark.parametrize("kind", ["int[]", "jsonb", "int4multirange"])
def test_nor_has_a_parameter(host: DatabaseHost, kind: str) -> None:
    texts = {"int[]": "{" + "1," * COUNT + "1}", "jsonb": "[" + "1, " * 3 * COUNT + "1]",
             "int4multirange": "{" + "[1,2)," * COUNT + "[1,2)}"}  # fmt: skip
    with psycopg.connect(host.dsn(), autocommit=True) as client:
        client.pgconn.prepare(b"p", f"select $1::{kind} is null".encode())
        for _ in range(2):
            with longest_piece() as piece:
                asked = client.pgconn.exec_prepared(b"p", [texts[kind].encode()])
            assert asked.get_value(0, 0) == b"f"
            assert piece[0] < PIECE_MAX_S
        wrong = client.pgconn.exec_prepared(b"p", [texts[kind][:-1].encode()])
        assert b"Parameter $1" in wrong.error_message
        assert client.pgconn.exec_prepared(b"p", [texts[kind].encode()]).get_value(0, 0) == b"f"


def test_pieces_are_counted_no_further_than_they_matter() -> None:
    short = [(1, (2, 3), "x"), None, "y" * 100]
    assert not is_long(short)
    assert is_long([short] * PIECES_MAX)
    assert is_long([(0,) * (PIECES_MAX + 1)])
    assert is_long(["x" * 11 * PIECES_MAX])
    deep = (0,) * 10
    for _ in range(40):
        deep = (deep, deep)  # type: ignore[assignment]
    begun = time.thread_time()
    assert is_long([deep])
    assert time.thread_time() - begun < PIECE_MAX_S


def test_an_array_takes_as_long_as_it_has_items() -> None:
    begun = time.thread_time()
    assert len(parse_value("{" + "1," * 300_000 + "1}", t.Array(t.Integer()))) == 300_001
    assert time.thread_time() - begun < 8  # the square of it is minutes


def test_a_number_of_any_length_is_out_of_range() -> None:
    with pytest.raises(InvalidValue, match="out of range"):
        Xid8().parse("9" * 40_000)
    assert Xid8().parse("0" * 40_000 + "7") == Xid8().parse("7")
