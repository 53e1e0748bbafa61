"""Statements that a hostile or careless client sends: more work, memory or text than anybody has.

A statement is a *kind* (what it is made of) and a text. `Hostile` makes them of a seed: a relation
that has no end or no room, or an expression that is too much, or a text that is too long to plan,
inside of a statement of any sort.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """What is sent; `begin` for one that only means something in a transaction."""

    kind: str
    text: str
    begin: bool = False


#: Relations with a column x that never end, or end late.
RELATIONS: dict[str, str] = {
    "cross": "(select a * b as x from generate_series(1,100000) a, generate_series(1,100000) b) r",
    "triple": "(select a.k as x from kv a, kv b, kv c) r",
    "square": "(select a.k as x from kv a, kv b where a.v < b.v) r",
    "self keys": "(select a.k as x from kv a join kv b on a.k % 3 = b.k % 3 join kv c on true) r",
    "endless": "(with recursive w(x) as (select 1 union all select x + 1 from w) "
    "select x from w) r",
    "doubling": "(with recursive w(x) as (select 'x' union all select x || x from w) "
    "select length(x) as x from w) r",
    "branching": "(with recursive w(x) as (select 1 union all select w.x + g from w, "
    "generate_series(1, 10) g) select x from w) r",
    "mutual": "(with mutually recursive a(x int) as (select 1 union all select x + 1 from b), "
    "b(x int) as (select x from a) select x from a) r",
    "seconds": "(select extract(epoch from s) as x from generate_series('0001-01-01'::timestamp, "
    "'9999-12-31'::timestamp, interval '1 second') s) r",
    "numbers": "(select n as x from generate_series(1::numeric, 9999999, 0.5) n) r",
    "lateral": "(select g as x from kv, lateral generate_series(1, kv.k * 1000000) g) r",
    "pieces": "(select length(p) as x from regexp_split_to_table(repeat('a,', 4000000), ',') p) r",
    "rows": "(select length(p) as x from string_to_table(repeat('a,', 4000000), ',') p) r",
    "wide text": "(select length(repeat(v, 100000)) as x from kv a, generate_series(1, 1000)) r",
    "except": "(select a as x from generate_series(1,9000000) a except all "
    "select b from generate_series(1,9000000) b) r",
    "exists": "(select a.k as x from kv a where exists (select 1 from kv b, kv c where "
    "b.k * c.k = a.k * 1000003)) r",
}

#: What is done with such a relation.
CONSUMERS: dict[str, str] = {
    "count": "select count(*) as x from {r}",
    "sum": "select sum(x::numeric * x::numeric) as x from {r}",
    "distinct": "select count(distinct x) as x from {r}",
    "groups": "select x, count(*) as n from {r} group by x order by 2 desc limit 3",
    "sorted": "select x from {r} order by x desc limit 5",
    "window": "select max(s) as x from (select sum(x) over (order by x) as s from {r}) w",
    "ranks": "select max(s) as x from (select rank() over (order by x) as s from {r}) w",
    "texts": "select length(string_agg(x::text, ',')) as x from {r}",
    "array": "select cardinality(array_agg(x)) as x from {r}",
    "objects": "select length(jsonb_agg(x)::text) as x from {r}",
    "in": "select 1 as x where 0 in (select x from {r})",
    "scalar": "select (select max(x) from {r}) + 1 as x",
    "union": "select count(*) as x from (select x from {r} union select -x from {r}) u",
    "deviation": "select stddev(x) as x, var_pop(x) as y from {r}",
}

#: Expressions that are too much by themselves.
SCALARS: dict[str, str] = {
    "repeat": "length(repeat(repeat('x', 10000), 100000))",
    "pad": "length(lpad('x', 9999999, 'abc') || rpad('x', 9999999, 'def'))",
    "replace": "length(replace(replace(repeat('a', 3000), 'a', repeat('a', 3000)), 'a', 'aaa'))",
    "regexp replace": "length(regexp_replace(repeat('a', 5000), 'a', repeat('b', 5000), 'g'))",
    "plus plus": "(repeat('a', 5000) || 'b') ~ '^(a+)+$'",
    "either": "(repeat('a', 5000) || 'b') ~ '^(a|a)*$'",
    "similar": "(repeat('a', 5000) || 'b') similar to '(a|a)*'",
    "like": "repeat('a', 100000) like repeat('%a', 500) || 'b'",
    "back": "(repeat('a', 40) || 'b') ~ '^(a+)+\\1c$'",
    "back twice": "(repeat('ab', 40) || 'c') ~ '^((ab|a|b)+)+\\1$'",
    "look": "repeat('ab', 20000) ~ '(?=(a|b)*c)(ab)*d'",
    "captures": "regexp_match(repeat('ab', 4000), '((a|ab)(b|c)*)*')",
    "format": "length(format('%9999999s%9999999s', 'x', 'y'))",
    "digest": "md5(repeat(repeat('x', 10000), 900))",
    "split": "cardinality(string_to_array(repeat('a,', 4000000), ','))",
    "json": "length((repeat('[', 5000) || repeat(']', 5000))::jsonb::text)",
    "power": "power(9.9::numeric, 99999) * 1",
    "subquery": "(select count(*) from generate_series(1, 9000) a, generate_series(1, 9000) b)",
}

#: Statements around a query or an expression.
AROUND: dict[str, tuple[str, bool]] = {
    "plain": ("{q}", False),
    "cte": ("with q as ({q}) select * from q", False),
    "insert": ("insert into sink select 1, q.x::text from ({q}) q limit 1", False),
    "update": ("update sink set v = (select q.x::text from ({q}) q limit 1)", False),
    "delete": ("delete from sink where v = (select q.x::text from ({q}) q limit 1)", False),
    "copy": ("copy ({q}) to stdout", False),
    "cursor": ("declare c cursor for {q}; fetch 1 from c", True),
    "subscribe": ("subscribe ({q})", False),
    "explain": ("explain {q}", False),
    "prepare": ("prepare p as {q}; execute p; deallocate p", False),
    "table": ("create temp table made as {q}; drop table made", False),
    "view": ("create temp view seen as {q}; select * from seen; drop view seen", False),
}


def _planning() -> dict[str, Callable[[int], str]]:
    """Texts that are long or deep, of a size."""
    return {
        "case": lambda n: "select case k " + "".join(
            f"when {i} then 'v{i}' " for i in range(n)) + "end from kv where k = 1",
        "in": lambda n: f"select count(*) from kv where k in ({','.join(map(str, range(5 * n)))})",
        "or": lambda n: "select count(*) from kv where " + " or ".join(
            f"k = {i}" for i in range(n)),
        "and": lambda n: "select count(*) from kv where " + " and ".join(
            f"k <> {i}" for i in range(n)),
        "concat": lambda n: "select length(" + " || ".join(["v"] * n) + ") from kv where k = 1",
        "plus": lambda n: "select " + " + ".join(["k"] * n) + " from kv where k = 1",
        "union": lambda n: " union all ".join(["select 1"] * n),
        "parens": lambda n: "select " + "(" * n + "1" + ")" * n,
        "not": lambda n: "select " + "not " * n + "true",
        "minus": lambda n: "select " + "- " * n + "1",
        "functions": lambda n: "select " + "abs(" * n + "k" + ")" * n + " from kv where k = 1",
        "subqueries": lambda n: "select * from " + "(select * from " * (n // 10) + "kv" + "".join(
            f") s{i}" for i in range(n // 10)),
        "columns": lambda n: "select " + ", ".join(
            f"k + {i} as c{i}" for i in range(n)) + " from kv",
        "values": lambda n: "select count(*) from (values " + ",".join(
            f"({i}, 'v{i}')" for i in range(5 * n)) + ") t (a, b)",
        "joins": lambda n: "select count(*) from kv t0 " + " ".join(
            f"join kv t{i} on t{i}.k = t{i - 1}.k" for i in range(1, 2 + n // 100)),
        "commas": lambda n: "select count(*) from " + ", ".join(
            f"kv t{i}" for i in range(2 + n // 200)) + " where t0.k = t1.k",
        "doubling": lambda n: "with c0 as (select 1 as x)" + "".join(
            f", c{i} as (select a.x from c{i - 1} a, c{i - 1} b)" for i in range(1, 2 + n // 100)
        ) + f" select count(*) from c{1 + n // 100}",
        "doubled columns": lambda n: "select x from " + "".join(
            "(select x || x as x from " for _ in range(n // 50)
        ) + "(select v as x from kv) s" + "".join(f") t{i}" for i in range(n // 50)),
        "coalesce": lambda n: "select coalesce(" + ",".join(["null"] * n) + ", k) from kv",
        "array": lambda n: "select cardinality(array[" + ",".join(map(str, range(5 * n))) + "])",
        "nested case": lambda n: "select " + "case when k = 1 then 1 else " * (n // 10) + "0" +
            " end" * (n // 10) + " from kv",
        "exists": lambda n: "select 1 from kv t0 where " + "".join(
            f"exists (select 1 from kv t{i} where t{i}.k = t{i - 1}.k and " for i in
            range(1, 2 + n // 200)) + "true" + ")" * (1 + n // 200),
        "aggregates": lambda n: "select " + ", ".join(
            f"sum(k + {i})" for i in range(n)) + " from kv",
        "windows": lambda n: "select " + ", ".join(
            f"sum(k) over (order by k + {i})" for i in range(n // 20)) + " from kv",
        "casts": lambda n: "select k" + "::text::int" * n + " from kv where k = 1",
    }  # fmt: skip


PLANNING = _planning()


class Hostile:
    """Statements of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def statement(self) -> Statement:
        """The next one."""
        pick, roll = self._random, self._random.random()
        if roll < 0.25:
            name = pick.choice(sorted(PLANNING))
            size = pick.choice((300, 1_000, 3_000, 10_000))
            if roll < 0.05:  # DDL is planned, too
                text = f"create temp view long as {PLANNING[name](size)}; drop view long"
                return Statement(f"planning {name} view", text)
            return Statement(f"planning {name}", PLANNING[name](size))
        way = pick.choice(sorted(AROUND))
        around, begin = AROUND[way]
        if roll < 0.5:
            name = pick.choice(sorted(SCALARS))
            over = pick.choice(("", " from kv where k < 50", " from kv where k = 1"))
            return Statement(
                f"{name} {way}", around.format(q=f"select {SCALARS[name]} as x{over}"), begin
            )
        name, use = pick.choice(sorted(RELATIONS)), pick.choice(sorted(CONSUMERS))
        query = CONSUMERS[use].format(r=RELATIONS[name])
        return Statement(f"{name} {use} {way}", around.format(q=query), begin)
