"""The canonical encoding of plans (`noonmark.sql.ir.encoding`): its laws, and what stays."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.plan.arrangement import ArrangementSpec
from noonmark.errors import NoonmarkError, Unsupported, UsageError
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.rows.identity import hashable
from noonmark.rows.schema import Column, Schema
from noonmark.sql.functions import FUNCTIONS, cast
from noonmark.sql.ir import asked, call, relation, scalar, tags
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.encoding import VERSION, decode, encode
from noonmark.sql.ir.node import Node, walk_once
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify
from support.sql.queries import SCHEMAS
from support.sql.wide import WideGenerator
from support.store.rows import ALL_TYPES, values

GOLDEN = Path(__file__).with_name("encodings.txt")

#: What was printed of plans once, what the encoding is made of, and what is seldom right.
HOSTILE = st.sampled_from(
    [", returns=False", "a', returns=False", "Literal(type=Text(), value='a')", "\\x00", "'", '"',
     "''", "$1", "--", "/*", "\udc80", "e\u0301", "\u00e9", "\x01\x02", "ALL OF IT"]
)  # fmt: skip
FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308]
DECIMALS = [
    Decimal(text)
    for text in ("0", "-0", "0.0", "1", "1.0", "1.00", "1E+2", "100", "1e-40", "NaN", "Infinity",
                 "-Infinity", "9" * 38, "-" + "9" * 60, "1e16383")
]  # fmt: skip


@st.composite
def literals(draw: st.DrawFn) -> s.Literal:
    kind = draw(st.sampled_from(ALL_TYPES))
    value = hashable(draw(st.none() | values(kind)))
    if isinstance(kind, t.Text):
        value = draw(st.just(value) | HOSTILE)
    if isinstance(kind, t.Double):
        value = draw(st.just(value) | st.sampled_from(FLOATS))
    if isinstance(kind, t.Numeric):
        value = draw(st.just(value) | st.sampled_from(DECIMALS))
    return s.Literal(kind, value)


@st.composite
def plans(draw: st.DrawFn) -> r.Relation:
    """A generated query's plan, before the rules or after, with generated literals and names."""
    generator = WideGenerator(draw(st.integers(0, 10_000)), 0.1)
    while True:
        try:
            plan = plan_query(generator.query(2, [])[0], SCHEMAS).relation
            break
        except NoonmarkError:
            continue
    if draw(st.booleans()):
        plan = simplify(plan)
    given_literals = draw(st.lists(literals(), max_size=4))
    names = [f"{draw(HOSTILE)}{at}".replace("\0", "") for at in range(len(given_literals))]
    if given_literals:
        plan = r.Project(plan, tuple(given_literals), tuple(names))
        columns = Schema(
            tuple(Column(n, x.type) for n, x in zip(names, given_literals, strict=True))
        )
        plan = r.Union((plan, r.Constant(columns, (tuple(x.value for x in given_literals),))))
    return plan


@given(plans())
def test_decoding_gives_the_same_plan(plan: r.Relation) -> None:
    """The inverse law, and with it that different plans have different encodings."""
    data = encode(plan)
    again = decode(data)
    assert again == plan
    assert hash(again) == hash(plan)
    assert encode(again) == data


@given(literals(), literals())
def test_literals_have_one_encoding_only_if_they_are_equal(
    one: s.Literal, other: s.Literal
) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@pytest.mark.parametrize("pool", [FLOATS, DECIMALS], ids=["floats", "decimals"])
def test_numbers_that_print_differently_are_told_apart(pool: list[Any]) -> None:
    kind = t.Double() if pool is FLOATS else t.Numeric()

    def printed(value: Any) -> str:
        return "nan" if math.isnan(value) else str(value)

    for one in pool:
        for other in pool:
            first, second = s.Literal(kind, one), s.Literal(kind, other)
            same = printed(one) == printed(other)
            assert (encode(first) == encode(second)) == (first == second) == same, (one, other)
            rows = [r.Constant(Schema((Column("x", kind),)), ((x,),)) for x in (one, other)]
            assert (encode(rows[0]) == encode(rows[1])) == (rows[0] == rows[1]) == same


def test_what_is_one_object_does_not_count() -> None:
    """Canonical: a plan and one that shares its subplans; in bytes, as long as it is different."""
    scan = r.Scan("t", SCHEMAS["t"])
    shared: r.Relation = scan
    for _ in range(40):
        shared = r.Union((shared, shared))
    small: r.Relation = r.Union((scan, r.Scan("t", Schema(tuple(SCHEMAS["t"].columns)))))
    assert encode(small) == encode(r.Union((scan, scan)))
    assert len(encode(shared)) < len(encode(scan)) + 40 * 20


def test_names_for_people_do_not_count() -> None:
    kind = t.Integer()
    assert encode(s.ColumnRef(kind, True, 1, "a")) == encode(s.ColumnRef(kind, True, 1, "b"))
    assert encode(asked.Now(position=3)) == encode(asked.Now())


def test_every_kind_and_field_has_its_number() -> None:
    """A class or a field that is added here has to be added there."""
    found = {
        each
        for module in (relation, scalar, call, asked)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Node)
    }
    abstract = {Node, s.Scalar, r.Relation}
    known = {kind.made for kind in tags.KINDS}
    assert found - abstract - set(tags.UNWRITTEN) <= known
    types = [x for x in vars(t).values() if isinstance(x, type) and issubclass(x, t.SqlType)]
    assert {*types, *CODED} - {t.SqlType, t.Coded} <= known
    for kind in tags.KINDS:
        own = {f.name for f in dataclasses.fields(kind.made) if f.init and f.compare}
        assert own == {field.name for field in kind.fields}, kind.made.__name__
        assert len({field.id for field in kind.fields}) == len(kind.fields)
    assert len({kind.tag for kind in tags.KINDS}) == len(tags.KINDS)


def test_what_only_a_session_knows_is_refused() -> None:
    with pytest.raises(Unsupported, match="known to its session alone"):
        encode(asked.Parameter(t.Integer(), 1))


def test_another_version_is_refused() -> None:
    data = bytearray(encode(s.TRUE))
    data[0] = VERSION + 1
    with pytest.raises(UsageError, match="version 2"):
        decode(bytes(data))
    with pytest.raises(UsageError):
        decode(encode(s.TRUE) + b"\0")
    with pytest.raises(UsageError):
        decode(encode(s.TRUE)[:-1])


# --- what never changes

QUERIES = {
    "filter": "select a, b || 'x' from t where a > 1 and b is not null or not (a in (1, 2))",
    "cases": "select case when a = 1 then 'one' else b end, coalesce(b, 'none'), a::bigint from t",
    "joins": "select t.a from t left join u on t.a = u.a and t.b is not distinct from u.y "
    "full join v on v.k = t.a where (row(t.a, 'z')).f1 = 1",
    "lateral": "select t.a, x.n from t, lateral (select count(*) as n from u where u.a = t.a) x",
    "groups": "select a, count(distinct b), sum(a) filter (where a > 0), string_agg(b, ',' "
    "order by b desc nulls last) from t group by a",
    "top": "select distinct b from t order by b limit 3 offset 1",
    "sets": "(select a from t intersect all select a from u) except select k from v",
    "windows": "select a, row_number() over (partition by b order by a), sum(a) over (order by a "
    "rows between 1 preceding and current row exclude ties) from t",
    "functions": "select n, array[n, null] from generate_series(1, 3) with ordinality as g(n, o)",
    "recursion": "with recursive c(n) as (values (1) union select n + 1 from c where n < 5) "
    "select n from c",
    "mutual": "with mutually recursive (return at recursion limit 7) c (n int) as (select a "
    "from t union select n from c) select n from c",
    "shared": "with x as (select a, count(*) as n from t group by a) select * from x one join "
    "x two on one.a = two.n",
    "temporal": "select a from t where mz_now() < a",
    "rows": "select * from (values (1, 'a', null::date), (2, 'b', date '2024-02-29')) x",
    "literals": "select true, 1::smallint, 2, 3::bigint, real '1.5', float8 '-0', numeric '1.50', "
    "numeric(5,2) '1.5', 'text', varchar(3) 'abc', char(4) 'ab', '\\x00ff'::bytea, "
    "date 'infinity', time '24:00', timestamp '2024-01-01 00:00:00.000001', "
    "timestamptz '9999-12-31 23:59:59+00', interval '1 mon 2 days 3 us', "
    "uuid '12345678-9abc-def0-1234-56789abcdef0', '{\"a\": [1]}'::jsonb, '{1,null}'::int[]",
}


def _planned(sql: str) -> r.Relation:
    return plan_query(sql, SCHEMAS).relation


def _of_plan(name: str, plan: r.Relation) -> Iterator[str]:
    yield f"plan {name} {encode(plan).hex()}"
    for sums, turns in ((False, False), (True, False), (False, True)):
        yield f"need {name} {sums:d} {turns:d} {ArrangementSpec(plan, sums, turns).digest}"


def _numbers() -> Iterator[str]:
    for kind in tags.KINDS:
        fields = [f"{each.id} {each.name} {_absent(each)}" for each in kind.fields]
        yield f"kind {kind.tag} {kind.made.__name__}: {', '.join(fields)}"
    for tag, codes in tags.ENUMS.items():
        yield f"enum {tag}: {', '.join(f'{code} {member}' for member, code in codes.items())}"


def _absent(field: tags.Field) -> str:
    return "written" if field.absent is tags.WRITTEN else f"absent if {field.absent}"


def test_encodings_and_names_never_change() -> None:
    """What a location has under an old name would not be found again.

    A name of Python that changed is changed in the file, too; a number never is. New plans may be
    added (NOONMARK_REWRITE=1 writes those of `QUERIES` as they are planned now).
    """
    if os.environ.get("NOONMARK_REWRITE") == "1":
        plans = {name: _planned(sql) for name, sql in QUERIES.items()}
        plans |= {f"simplified-{name}": simplify(plan) for name, plan in plans.items()}
        made = [line for name, plan in plans.items() for line in _of_plan(name, plan)]
        GOLDEN.write_text("\n".join([*_numbers(), *made]) + "\n")
    kept = GOLDEN.read_text().splitlines()
    stored = {x.split()[1]: decode(bytes.fromhex(x.split()[2])) for x in kept if x[:5] == "plan "}
    made = [line for name, plan in stored.items() for line in _of_plan(name, plan)]
    assert [*_numbers(), *made] == kept
    found = {type(node) for plan in stored.values() for node in walk_once(plan)}
    missing = {kind.made for kind in tags.KINDS if issubclass(kind.made, Node)} - found
    assert missing == set(), "what never changes has every kind"


def test_another_edition_is_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a function and of a cast; a plan of another edition is not taken for one of now."""
    plan = _planned("select abs(a), b::bytea from t")
    before = encode(plan)
    entry = FUNCTIONS.by_id["abs(integer)"]
    later = dataclasses.replace(entry, edition=2)
    monkeypatch.setitem(FUNCTIONS.by_id, entry.id, later)
    after = encode(plan)
    assert after != before
    assert decode(after) == plan
    with pytest.raises(UsageError, match="edition 1"):
        decode(before)
    monkeypatch.setitem(cast.EDITIONS, (t.Text, t.Bytea), 3)
    assert encode(plan) not in (before, after)
    monkeypatch.undo()
    assert encode(plan) == before
    with pytest.raises(UsageError, match="edition 2"):
        decode(after)


def test_a_name_is_the_same_in_every_process() -> None:
    """Whatever the seed of Python's hashes."""
    query = "select a, count(*) from t where b in ('x', 'y', 'z') group by a"
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from support.sql.queries import SCHEMAS\n"
        "from noonmark.compute.plan.definition import Definition\n"
        f"defined = Definition.of_sql('v', {query!r}, SCHEMAS)\n"
        "print(*(each.digest for each in defined.arrangement_specs({})))"
    )
    seed = str(random.Random(3).randrange(1000))
    done = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": each},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for each in ("0", seed)
    ]
    assert done[0] == done[1] != "\n"
