"""Text that nobody meant to write: it is refused with an error of ours, or it is a plan of ours."""

from __future__ import annotations

import random
import re

import pytest

from noonmark.errors import NoonmarkError, SqlError, Unsupported
from noonmark.sql.dialect import read
from noonmark.sql.ir.node import Node, walk_once
from noonmark.sql.ir.relation import Relation
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.sql.queries import QUERIES, SCHEMAS

TEXT = r"""
select from where group by having order limit ( ) , * = <> || -> ' " ; -- /* */ null exists in any
all over partition join left full using on lateral with as case when then end cast :: interval date
'x' 1 1.5e999 $1 [ ] { } a b t u not and or is distinct union values array row unnest system() @ #
pg_read_file('/etc/passwd') java_method reflect \ % ^ & | ~ ! ? :x /*+ hint */
"""
WORDS = TEXT.split()

HOSTILE = [
    "select java_method('java.lang.Runtime', 'getRuntime')",
    "select reflect('java.lang.System', 'exit', 1)",
    "select * from parquet.`/etc/passwd`",
    "select * from csv.`/etc/passwd`",
    "select pg_read_file('/etc/passwd')",
    "select * from read_csv('/etc/passwd')",
    "select 1; drop table t",
    "create function f() returns int language sql as 'select 1'",
    "copy t from program 'id'",
    "select * from t where a = 1 into outfile '/tmp/x'",
    "select transform(a) using 'cat' from t",
    "select input_file_name(), monotonically_increasing_id(), spark_partition_id()",
    "select * from t@dblink",
    "explain select 1",
    "select '\0'",
    "select " + "(" * 5000 + "1" + ")" * 5000,
    "select " + "- " * 5000 + "1",
    "select " + " + ".join(["1"] * 20000),
    "select " + "not " * 5000 + "true",
    "select repeat('x', 2000000000)",
    "select lpad('x', 2000000000)",
    "select 10 ^ 100000",
    "select 1e9999999::numeric",
    "select ('1e100000'::numeric)",
    "select generate_series(1, 10000000000)",
    "select * from t" + ", t" * 2000,
]


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: sql[:40].replace("\0", "0"))
def test_is_refused(sql: str) -> None:
    answer = planned(sql)
    if isinstance(answer, NoonmarkError):
        assert isinstance(answer, SqlError | Unsupported) or answer.sqlstate[:2] in ("22", "54")
    else:
        assert all(isinstance(node, Node) for node in walk_once(answer))


def planned(sql: str) -> Relation | NoonmarkError:
    try:
        return simplify(plan_query(read(sql), SCHEMAS).relation)
    except NoonmarkError as error:
        return error


@pytest.mark.parametrize("seed", range(20))
def test_mutations_of_queries(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        tokens = re.findall(r"\w+|\S", chance.choice(QUERIES))
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(tokens) + 1)
            change = chance.choice(["insert", "delete", "swap", "replace"])
            if change == "insert" or not tokens:
                tokens.insert(at, chance.choice(WORDS))
            elif change == "delete":
                del tokens[min(at, len(tokens) - 1)]
            elif change == "replace":
                tokens[min(at, len(tokens) - 1)] = chance.choice(WORDS)
            else:
                chance.shuffle(tokens[max(at - 3, 0) : at])
        sql = " ".join(tokens)
        answer = planned(sql)
        if isinstance(answer, NoonmarkError):
            assert answer.position is None or 1 <= answer.position <= len(sql) + 1, sql
        else:
            assert all(isinstance(node, Node) for node in walk_once(answer))
