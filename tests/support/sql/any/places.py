"""Queries whose subqueries stand wherever one may stand, whose groups follow from keys, whose rows
are values, whose windows build on one another, and whose set operations are nested.
"""

from __future__ import annotations

from support.sql.any.scalars import Scope
from support.sql.any.sources import Query, Sources
from support.sql.any.values import KEYS, UNEQUAL

#: Where a correlated scalar subquery {q} over the columns {a} and {b} of a row stands.
_PLACES = (
    "select case when {a} is null then {q} else null end, {b} from {t}",
    "select coalesce({q}, {q}), {b} from {t}",
    "select count({q}), min({q}::text), {b} from {t} group by {b}",
    "select {b}, count(*) filter (where {q} is not null) from {t} group by {b}",
    "select {b}, count(*) from {t} group by {b}, {q}",
    "select {q} as key, count(*) from {t} group by key",
    "select {q} as key, count(*) from {t} group by 1 having count(*) > 1",
    "select {b} from {t} order by {q} nulls first, {b}, {b}::text",
    "select {b}, string_agg({a}::text, ',' order by {q}::text, {a}::text) from {t} group by {b}",
    "select {b}, rank() over (partition by {q} order by {b}) from {t}",
    "select {b}, count(*) over (order by {q}) from {t}",
    "select {b}, array[{q}, {q}]::text, row({q}, {b})::text from {t}",
    "select distinct {q} from {t}",
    "select distinct on ({q}) {q}, {b} from {t} order by {q}, {b}, {b}::text",
    "select {b} from {t} where {q} is not distinct from {q} and {q} is not null",
    "select {b} from {t} where ({q}, {b}) in (({q}, {b}), (null, {b}))",
    "select x.* from {t} cross join lateral (values ({q}, {b}), (null, {b})) as x(p, q)",
    "select x.* from {t} cross join lateral (select {q} union all select {q}) as x",
    "select {b}, (select count(*) from (select {q} as i) as s where s.i is null) from {t}",
    "select {b}, exists (select 1 where {q} is not null), {q} in (select {q}) from {t}",
    "select {b}, {q} = any (array[{q}]) as i, ({q}, 1) = (select {q}, 1) as j from {t}",
)
#: Rows of a table {t} as values; {k} is a column of it that has an order.
_ROWS = (
    "count({t}) as a, count({t}.*) as b, count(distinct {k}) as c", "count(distinct to_jsonb({t}))",
    "string_agg(({t})::text, ';' order by ({t})::text)", "jsonb_agg({t} order by ({t})::text)",
    "count(*) filter (where {t} is null) as a, count(*) filter (where {t} is not null) as b",
    "count(*) filter (where row({k}) = row({k}))", "bool_or(row({k}, 1) < row({k}, 2))",
    "count(*) filter (where ({k}, 1) = (select {k}, 1)), bool_or(row({k}, null) = row({k}, null))",
    "bool_and(row({k}, 1) is distinct from row({k}, null)), bool_or(({k}, {k}) in (({k}, {k})))",
)  # fmt: skip


class Places(Sources):
    """Forms of queries; see the module."""

    def _places(self, _: int) -> Query:
        text, scope = self.source(0)
        pairs = [each for each in scope if each[1] in KEYS] or list(scope)
        (a, _kind), (b, _other) = self.choices.pick(pairs), self.choices.pick(pairs)
        form = self.choices.pick(_PLACES)
        self.met[f"subquery in {form}"] += 1
        made, rest = "", form
        query = self._scalar(scope)
        while "{q}" in rest:
            before, _, rest = rest.partition("{q}")
            made += before + (self._scalar(scope) if "group by" not in form else query)
        made += rest
        whole = made.replace("{a}", a).replace("{b}", b).replace("{t}", text)
        name = self.fresh("p")
        return f"select ({name})::text from ({whole}) as {name}", ["text"]

    def _scalar(self, scope: Scope) -> str:
        """A subquery of one row at the most, of integers; it may depend on two rows outside."""
        inside, inner = self.source(0)
        where = self.correlated(scope, inner)
        name, _ = self.choices.pick([c for c in inner if c[1] in KEYS] or list(inner))
        form = self.choices.below(5)
        if form == 0:
            return f"(select count(*) from {inside} where {where})"
        if form == 1:
            return (
                f"(select count(distinct {name}) from {inside} where {where} having count(*) > 0)"
            )
        if form == 2:
            deep, most = self.source(0)
            both = f"{self.correlated(inner, most)} and {self.correlated(scope, most)}"
            return (
                f"(select count(*) from {inside} where {where} and exists"
                f" (select 1 from {deep} where {both}))"
            )
        if form == 3:
            return (
                f"(select dense_rank() over (order by {name}) from {inside} where {where}"
                f" order by 1 desc limit 1)"
            )
        return f"(select length({name}::text)::int8 from {inside} where {where} order by 1 limit 1)"

    def _dependent(self, _: int) -> Query:
        """Columns that follow from the primary key of the groups."""
        keyed = [each for each in self.tables if each.key]
        table, alias = self.choices.pick(keyed), self.fresh("t")
        scope = [(f"{alias}.{name}", kind) for name, kind in table.columns]
        free = [each for each in scope if each[1] not in UNEQUAL]
        more, other = self.source(0)
        word = self.choices.pick(("join", "left join", "right join", "full join"))
        on = self._on(scope, other, only_equal=word == "full join")
        own = [self.choices.pick(free) for _ in range(1 + self.choices.below(3))]
        items = [name for name, _ in own]
        kind = self.choices.pick([kind for _, kind in own])
        items.append(self.scalars.scalar(kind, own, 1))
        counted = self.choices.pick(other)[0]
        by = self.choices.pick(
            ("{k}", "{k}, {c}", "rollup ({c}), {k}", "grouping sets (({k}), ({k}, {c}))")
        ).replace("{c}", own[0][0])  # fmt: skip
        by = by.replace("{k}", f"{alias}.k")
        having = f" having {self.scalars.boolean(own, 1)}" if self.choices.often(1, 3) else ""
        self.met[f"groups by a key, {word}"] += 1
        return (
            f"select {alias}.k, {', '.join(items)}, count({counted}) from {table.name} as {alias}"
            f" {word} {more} on {on} group by {by}{having}",
            ["int4", *(kind for _, kind in own), kind, "int8"],
        )

    def _rows(self, _: int) -> Query:
        """Rows of a table as values."""
        table, alias = self.choices.pick(self.tables), self.fresh("t")
        k = self.choices.pick([n for n, kind in table.columns if kind in KEYS] or ["k"])
        form = self.choices.pick(_ROWS)
        self.met[f"row as a value: {form}"] += 1
        items = form.replace("{t}", alias).replace("{k}", f"{alias}.{k}")
        group = f" group by {alias}.{k}" if self.choices.often(1, 2) else ""
        name = self.fresh("p")
        whole = f"select {items} from {table.name} as {alias}{group}"
        return f"select ({name})::text from ({whole}) as {name}", ["text"]

    def _nested(self, depth: int) -> Query:
        """Set operations inside of set operations."""
        kinds = [self.choices.pick(KEYS) for _ in range(1 + self.choices.below(2))]

        def whole(level: int) -> str:
            if level == 0:
                return self._arm(depth, kinds)
            word = self.choices.pick(("union all", "union", "intersect", "except", "except all",
                                      "intersect all"))  # fmt: skip
            self.met[f"nested {word}"] += 1
            left, right = whole(self.choices.below(level + 1) and level - 1), whole(level - 1)
            return f"({left} {word} {right})"

        return whole(2), kinds

    def _arm(self, depth: int, kinds: list[str]) -> str:
        raise NotImplementedError

    def _named_windows(self, _: int) -> Query:
        """Windows that build on one another."""
        text, scope = self.source(0)
        keys = [each for each in scope if each[1] in KEYS] or list(scope)
        (a, kind), (b, other) = self.choices.pick(keys), self.choices.pick(keys)
        frame = self.choices.pick(
            ("", " rows 1 preceding", " groups between 1 preceding and 1 following exclude ties",
             " rows between 2 following and 1 following", " range unbounded preceding",
             " rows between 1+1 preceding and current row exclude group")
        )  # fmt: skip
        self.met[f"window on a window{frame}"] += 1
        order = f"order by {b} nulls first, {b}::text, {a}, {a}::text"
        return (
            f"select {a}, {b}, count({a}) over (v{frame}), rank() over (w {order}), count(*) over w"
            f" from {text} window w as (partition by {a}), v as (w {order})",
            [kind, other, "int8", "int8", "int8"],
        )
