"""Random queries and rows over the collections of `support.sql.queries`, from a seed.

Every query has one answer: an order is total, limits come with an order, divisors are not zero and
numbers stay small. So two engines that differ on one of them do not both know SQL.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

Columns = list[tuple[str, str]]  # (name as it is written, kind)

TABLES: dict[str, Columns] = {
    "t": [("a", "int"), ("b", "text"), ("c", "num"), ("d", "date")],
    "u": [("a", "int"), ("x", "int"), ("y", "text")],
    "v": [("k", "big"), ("z", "float")],
    "empty": [("a", "int"), ("e", "text")],
}
KINDS = ("int", "text", "num", "date", "big")
_LITERALS = {
    "int": ["0", "1", "2", "3", "-1", "10", "null::int"],
    "big": ["0::bigint", "2::bigint", "5::bigint"],
    "num": ["0.5", "1.25", "10.00", "-3.1", "null::numeric"],
    "text": ["'one'", "'p'", "''", "'none'", "null::text"],
    "date": ["date '2020-01-01'", "date '2021-06-30'", "null::date"],
    "float": ["1.5::float8", "0::float8"],
}


class Generator:
    """One stream of queries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def pick(self, items: Any) -> Any:
        return self.random.choice(list(items))

    def chance(self, part: float) -> bool:
        return self.random.uniform(0, 1) < part

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    # --- scalars

    def scalar(self, kind: str, scope: Columns, depth: int) -> str:
        known = [name for name, k in scope if k == kind]
        if depth <= 0 or self.chance(0.4):
            return self.pick(known) if known and self.chance(0.8) else self.pick(_LITERALS[kind])
        return self.compound(kind, scope, depth - 1)

    def compound(self, kind: str, scope: Columns, depth: int) -> str:
        def sub(k: str) -> str:
            return self.scalar(k, scope, depth)

        forms = {
            "int": [
                lambda: f"({sub('int')} + {sub('int')})",
                lambda: f"({sub('int')} * 2)",
                lambda: f"(- {sub('int')})",
                lambda: f"({sub('int')} / 3)",
                lambda: f"({sub('int')} % 3)",
                lambda: f"length({sub('text')})",
                lambda: f"({sub('date')} - {sub('date')})",
                lambda: f"coalesce({sub('int')}, {sub('int')})",
            ],
            "big": [lambda: f"({sub('big')} + {sub('int')})", lambda: f"({sub('int')})::bigint"],
            "num": [
                lambda: f"({sub('num')} + {sub('int')})",
                lambda: f"({sub('num')} - {sub('num')})",
                lambda: f"({sub('num')} * {sub('num')})",
                lambda: f"round({sub('num')}, 1)",
                lambda: f"({sub('num')} / 4)",
                lambda: f"extract(year from {sub('date')})",
            ],
            "text": [
                lambda: f"({sub('text')} || {sub('text')})",
                lambda: f"upper({sub('text')})",
                lambda: f"substring({sub('text')} from 1 for 2)",
                lambda: f"({sub('int')})::text",
            ],
            "date": [
                lambda: f"({sub('date')} + {sub('int')})",
                lambda: f"({sub('date')} + interval '1 month')::date",
            ],
            "float": [lambda: f"({sub('float')} + 1)", lambda: f"({sub('int')})::float8"],
        }
        if self.chance(0.2):
            condition = self.boolean(scope, depth)
            return f"(case when {condition} then {sub(kind)} else {sub(kind)} end)"
        return str(self.pick(forms[kind])())

    def boolean(self, scope: Columns, depth: int) -> str:
        kind = self.pick([k for _, k in scope if k in KINDS] or ["int"])

        def sub(k: str = kind) -> str:
            return self.scalar(k, scope, depth - 1)

        if depth > 0 and self.chance(0.4):
            a, b = self.boolean(scope, depth - 1), self.boolean(scope, depth - 1)
            return str(self.pick([f"({a} and {b})", f"({a} or {b})", f"(not {a})"]))
        op = self.pick(["=", "<>", "<", "<=", ">", ">="])
        forms = [
            f"{sub()} {op} {sub()}",
            f"{sub()} {op} {sub()}",
            f"{sub()} is null",
            f"{sub()} is not null",
            f"{sub()} is distinct from {sub()}",
            f"{sub()} in ({sub()}, {sub()})",
            f"{sub()} between {sub()} and {sub()}",
            f"{sub('text')} like '%o%'",
        ]
        return f"({self.pick(forms)})"

    # --- FROM

    def source(self, depth: int, outer: Columns) -> tuple[str, Columns]:
        if depth > 0 and self.chance(0.25):
            query, kinds = self.query(depth - 1, [])
            alias = self.fresh("q")
            names = [f"c{at}" for at in range(len(kinds))]
            columns = [(f"{alias}.{name}", k) for name, k in zip(names, kinds, strict=True)]
            return f"({query}) as {alias}({', '.join(names)})", columns
        del outer
        table = self.pick(["t", "t", "u", "u", "v", "empty"])
        alias = self.fresh(table[0])
        return f"{table} as {alias}", [(f"{alias}.{n}", k) for n, k in TABLES[table]]

    def joined(self, depth: int) -> tuple[str, Columns]:
        text, scope = self.source(depth, [])
        for _ in range(self.pick([0, 0, 1, 1, 2])):
            right, columns = self.source(depth, [])
            kind = self.pick(["join", "join", "left join", "right join", "full join", "cross join"])
            both = scope + columns
            if kind == "cross join":
                text = f"{text} cross join {right}"
            else:
                text = f"{text} {kind} {right} on {self.tie(scope, columns, both, kind)}"
            scope = both
        if self.chance(0.15):
            number = next((n for n, k in scope if k == "int"), None)
            if number is not None:
                alias = self.fresh("g")
                text += f" cross join lateral generate_series(1, {number}) as {alias}(n)"
                scope = [*scope, (f"{alias}.n", "int")]
        return text, scope

    def tie(self, left: Columns, right: Columns, both: Columns, kind: str) -> str:
        """An equality, which a full join needs, and sometimes more."""
        pairs = [(a, b) for a, k in left for b, j in right if k == j and k != "float"]
        if not pairs:
            return "true" if kind != "full join" else "1 = 1"
        a, b = self.pick(pairs)
        more = self.boolean(both, 1) if self.chance(0.3) and kind != "full join" else "true"
        return f"{a} = {b} and {more}"

    # --- subqueries

    def condition(self, scope: Columns, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return self.boolean(scope, 2)
        text, inner = self.source(0, [])
        pairs = [(a, b) for a, k in inner for b, j in scope if k == j and k != "float"]
        tie = "true"
        if pairs and self.chance(0.8):
            a, b = self.pick(pairs)
            tie = f"{a} {self.pick(['=', '=', '=', '<', 'is not distinct from'])} {b}"
        where = f"{tie} and {self.condition([*inner, *scope], depth - 1)}"
        kind = self.pick([k for _, k in inner if k != "float"])
        item = next(n for n, k in inner if k == kind)
        left = self.scalar(kind, scope, 1)
        forms = [
            f"exists (select 1 from {text} where {where})",
            f"not exists (select 1 from {text} where {where})",
            f"{left} in (select {item} from {text} where {where})",
            f"{left} not in (select {item} from {text} where {where})",
            f"({left} in (select {item} from {text} where {where}) or {self.boolean(scope, 1)})",
            f"{left} {self.pick(['<', '>=', '='])} any (select {item} from {text} where {where})",
            f"{left} {self.pick(['<>', '<='])} all (select {item} from {text} where {where})",
            f"{left} >= (select max({item}) from {text} where {where})",
            f"(select count(*) from {text} where {where}) {self.pick(['=', '>'])} 1",
        ]
        return f"({self.pick(forms)})"

    # --- queries

    def query(self, depth: int, outer: Columns) -> tuple[str, list[str]]:
        """A query and the kinds of its columns."""
        if depth > 0 and self.chance(0.2):
            return self.set_operation(depth)
        text, scope = self.joined(depth)
        where = f" where {self.condition(scope, depth)}" if self.chance(0.6) else ""
        del outer
        if self.chance(0.35):
            return self.grouped(text, scope, where)
        kinds = [self.pick(KINDS) for _ in range(self.pick([1, 2, 2, 3]))]
        items = [self.scalar(kind, scope, 2) for kind in kinds]
        if depth > 0 and self.chance(0.25):
            items[0], kinds[0] = self.scalar_subquery(scope), "big"
        if self.chance(0.15):
            items[-1], kinds[-1] = self.window(scope), "big"
        distinct = "distinct " if self.chance(0.2) else ""
        select = f"select {distinct}{', '.join(items)} from {text}{where}"
        return self.limited(select, len(kinds)), kinds

    def limited(self, select: str, count: int) -> str:
        if not self.chance(0.25):
            return select
        order = ", ".join(
            f"{at}{self.pick(['', ' desc', ' nulls first', ' desc nulls last'])}"
            for at in range(1, count + 1)
        )
        limit, offset = self.pick([0, 1, 3, 5]), self.pick([0, 0, 1])
        return f"{select} order by {order} limit {limit} offset {offset}"

    def scalar_subquery(self, scope: Columns) -> str:
        text, inner = self.source(0, [])
        pairs = [(a, b) for a, k in inner for b, j in scope if k == j and k != "float"]
        tie = "true"
        if pairs:
            a, b = self.pick(pairs)
            tie = f"{a} {self.pick(['=', '=', '<'])} {b}"
        return f"(select count(*) from {text} where {tie} and {self.boolean(inner, 1)})"

    def window(self, scope: Columns) -> str:
        keys = [n for n, k in scope if k != "float"]
        # Ties do not show in these: they are equal for peers.
        call = self.pick(["rank()", "dense_rank()", "count(*)", f"count({keys[0]})"])
        by = f"partition by {self.pick(keys)} " if self.chance(0.5) else ""
        return f"{call} over ({by}order by {self.pick(keys)})"

    def grouped(self, text: str, scope: Columns, where: str) -> tuple[str, list[str]]:
        keys = [
            self.pick([c for c in scope if c[1] != "float"]) for _ in range(self.pick([0, 1, 2]))
        ]
        names = list(dict.fromkeys(name for name, _ in keys))
        kinds = [next(k for n, k in keys if n == name) for name in names]
        number = next((n for n, k in scope if k in ("int", "big", "num")), "1")
        text_column = next((n for n, k in scope if k == "text"), "'x'")
        calls = {
            f"count({number})": "big",
            "count(*)": "big",
            f"count(distinct {text_column})": "big",
            f"min({number})::numeric": "num",
            f"max({text_column})": "text",
            f"sum({number}) filter (where {self.boolean(scope, 1)})::numeric": "num",
            f"sum(distinct {number})::numeric": "num",
            f"avg({number})": "num",
            f"string_agg({text_column}, ',' order by {text_column})": "text",
        }
        chosen = self.random.sample(list(calls), self.pick([1, 2]))
        having = f" having count(*) > {self.pick([0, 1])}" if self.chance(0.3) else ""
        group = f" group by {', '.join(names)}" if names else ""
        items = [*names, *chosen]
        select = f"select {', '.join(items)} from {text}{where}{group}{having}"
        return select, [*kinds, *(calls[each] for each in chosen)]

    def set_operation(self, depth: int) -> tuple[str, list[str]]:
        kind = self.pick(KINDS)
        sides = []
        for _ in range(2):
            text, scope = self.joined(depth - 1)
            where = f" where {self.condition(scope, 1)}" if self.chance(0.5) else ""
            sides.append(f"select {self.scalar(kind, scope, 1)} from {text}{where}")
        word = self.pick(
            ["union", "union all", "intersect", "intersect all", "except", "except all"]
        )
        return f"({sides[0]}) {word} ({sides[1]})", [kind]

    # --- rows

    def rows(self) -> dict[str, dict[tuple[Any, ...], int]]:
        """Small collections with NULLs and duplicates."""
        days = [None, dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(2021, 6, 30)]
        numbers = [None, 0, 1, 2, 3, 4]
        money = [None, Decimal("0.00"), Decimal("1.25"), Decimal("-3.10"), Decimal("10.00")]
        texts = [None, "one", "two", "p", "none", ""]
        make = {
            "t": lambda: (*map(self.pick, (numbers, texts, money, days)),),
            "u": lambda: (*map(self.pick, (numbers, numbers, texts)),),
            "v": lambda: (self.pick(range(5)), self.pick([None, 0.5, 1.5, -2.25]), None, None),
        }
        rows: dict[str, dict[tuple[Any, ...], int]] = {"empty": {}}
        for name, act in make.items():
            rows[name] = {act(): self.pick([1, 1, 2]) for _ in range(self.pick([0, 3, 6]))}
        return rows
