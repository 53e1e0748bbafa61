# ruff: noqa: E501 - tables of texts are read by line
"""Queries over random tables: joins, subqueries, aggregates, windows, set operations, CTEs.

Every query has one answer as a multiset: a LIMIT comes with an order over all columns, an aggregate
that depends on an order has one, windows are ordered by all columns of what they range over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from support.anysql.choices import Choices
from support.anysql.scalars import Scalars, Scope
from support.anysql.values import TYPES, Table

#: What a select list has: every type can be in it.
_KINDS = list(TYPES)
#: What can be grouped, ordered and compared in the same way by everybody.
_KEYS = ["int4", "text", "date", "int8", "bool", "num", "numeric", "timestamp", "interval", "uuid",
         "varchar", "bpchar", "float8", "time", "bytea", "timestamptz", "int2", "int4s"]  # fmt: skip
_SUMMED = ("int4", "int8", "int2", "num", "numeric", "interval", "float8")
_FRAMES = (
    "", " rows between unbounded preceding and current row", " rows between 1 preceding and 1 following",
    " rows between current row and unbounded following exclude current row",
    " range between unbounded preceding and current row",
    " groups between 1 preceding and current row",
    " groups between 1 preceding and 1 following exclude ties",
    " rows between 2 following and 3 following",
)  # fmt: skip

Query = tuple[str, list[str]]


class Queries:
    """One stream of queries."""

    def __init__(
        self,
        choices: Choices,
        known: Callable[[str], bool],
        tables: Sequence[Table],
        met: Counter[str],
    ) -> None:
        self.choices = choices
        self.tables = tables
        self.met = met
        self.scalars = Scalars(choices, known, hostile=False, met=met)
        self._names = 0
        self._ctes: list[tuple[str, list[str]]] = []

    def next(self) -> tuple[str, bool]:
        """A whole query, and whether the order of its rows is part of its answer."""
        text, kinds = self.query(2)
        names = [f"c{at}" for at in range(len(kinds))]
        whole = f"select * from ({text}) as answer({', '.join(names)})"
        if not self.choices.often(1, 4):
            return whole, False
        ends = ("", " desc", " nulls first", " desc nulls last")
        order = ", ".join(f"{name}{self.choices.pick(ends)}" for name in names)
        limits = ("", " limit 3", " offset 1", " limit 2 offset 1", " fetch first 2 rows only")
        self.met["order by"] += 1
        return f"{whole} order by {order}{self.choices.pick(limits)}", True

    def query(self, depth: int) -> Query:
        """A query of some columns."""
        forms: list[Callable[[int], Query]] = [
            self._plain, self._grouped, self._windowed, self._set, self._with, self._distinct,
            self._subqueries, self._grouping_sets,
        ]  # fmt: skip
        if depth <= 0:
            return self._plain(0)
        form = self.choices.pick(forms)
        self.met[f"query {form.__name__.strip('_')}"] += 1
        return form(depth)

    # --- FROM

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _source(self, depth: int) -> tuple[str, Scope]:
        choices = self.choices
        form = choices.below(8)
        if self._ctes and form in (1, 2, 3):
            name, kinds = choices.pick(self._ctes)
            alias = self._fresh("w")
            self.met["reference of a CTE"] += 1
            return f"{name} as {alias}", [(f"{alias}.c{at}", k) for at, k in enumerate(kinds)]
        if form == 4 and depth > 0:
            text, kinds = self.query(depth - 1)
            alias, names = self._fresh("q"), [f"c{at}" for at in range(len(kinds))]
            scope = [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
            return f"({text}) as {alias}({', '.join(names)})", scope
        if form == 5:
            alias, kinds = self._fresh("v"), [choices.pick(_KEYS) for _ in range(2)]
            rows = ", ".join(
                f"({', '.join(self.scalars.scalar(kind, [], 0) for kind in kinds)})"
                for _ in range(1 + choices.below(3))
            )
            self.met["values"] += 1
            return f"(values {rows}) as {alias}(x, y)", [
                (f"{alias}.x", kinds[0]),
                (f"{alias}.y", kinds[1]),
            ]
        table = choices.pick(self.tables)
        alias = self._fresh("t")
        scope = [(f"{alias}.{n}", kind) for n, kind in table.columns]
        if choices.often(1, 10):
            self.met["whole row"] += 1
            scope += [(f"({alias})::text", "text"), (f"to_jsonb({alias})", "jsonb")]
        return f"{table.name} as {alias}", scope

    def _joined(self, depth: int) -> tuple[str, Scope]:
        text, found = self._source(depth)
        scope = list(found)
        for _ in range(self.choices.below(3)):
            kind = self.choices.pick(
                ("join", "left join", "right join", "full join", "cross join", "lateral", "using")
            )
            if kind == "lateral":
                more, columns = self._lateral(scope)
                word = self.choices.pick(("cross join", "left join"))
                self.met[f"{word} lateral"] += 1
                text += f" {word} lateral {more}" + (" on true" if word == "left join" else "")
                scope += columns
                continue
            if kind == "using":
                table, alias = self.choices.pick(self.tables), self._fresh("t")
                if text.count(" join ") or "(" in text or ".k" not in scope[0][0]:
                    kind = "join"
                else:
                    word = self.choices.pick(("join", "left join", "full join", "right join"))
                    self.met[f"{word} using"] += 1
                    text += f" {word} {table.name} as {alias} using (k)"
                    scope += [(f"{alias}.{n}", k) for n, k in table.columns if n != "k"]
                    continue
            more, other = self._source(depth - 1)
            self.met[kind] += 1
            text += f" {kind} {more}"
            if kind != "cross join":
                text += f" on {self._on(scope, other, only_equal=kind == 'full join')}"
            scope += other
        return text, scope

    def _on(self, left: Scope, right: Scope, *, only_equal: bool) -> str:
        pairs = [(a, b) for a, k in left for b, j in right if k == j and k in _KEYS]
        if not pairs:
            return "true" if not only_equal else "1 = 1"
        a, b = self.choices.pick(pairs)
        on = f"{a} = {b}"
        if only_equal or self.choices.below(3):
            return on
        return self.choices.pick(
            (f"{on} and {self.scalars.boolean([*left, *right])}", f"{a} < {b}",
             f"{a} is not distinct from {b}", f"({on} or {a} is null)")
        )  # fmt: skip

    def _lateral(self, scope: Scope) -> tuple[str, Scope]:
        alias = self._fresh("f")
        arrays = [name for name, kind in scope if kind == "int4s"]
        if arrays and self.choices.often(1, 2):
            name = self.choices.pick(arrays)
            self.met["unnest with ordinality"] += 1
            columns = [(f"{alias}.e", "int4"), (f"{alias}.n", "int8")]
            return f"unnest({name}) with ordinality as {alias}(e, n)", columns
        if self.choices.often(1, 3):
            self.met["generate_series"] += 1
            return f"generate_series(1, 2) as {alias}(g)", [(f"{alias}.g", "int4")]
        text, inner = self._source(0)
        where = self._correlated(scope, inner)
        name, _ = self.choices.pick([c for c in inner if c[1] in _KEYS] or list(inner))
        return (
            f"(select count(*), count(distinct {name}) from {text} where {where}) as {alias}(n, m)",
            [(f"{alias}.n", "int8"), (f"{alias}.m", "int8")],
        )

    def _correlated(self, outer: Scope, inner: Scope) -> str:
        pairs = [(a, b) for a, k in inner for b, j in outer if k == j and k in _KEYS]
        if not pairs or self.choices.often(1, 5):
            return self.scalars.boolean([*inner, *outer], 1)
        a, b = self.choices.pick(pairs)
        return f"{a} {self.choices.pick(('=', '=', '<', 'is not distinct from', '>='))} {b}"

    # --- SELECT

    def _where(self, scope: Scope) -> str:
        if not self.choices.often(1, 2):
            return ""
        if self.choices.often(1, 3):
            return f" where {self._condition(scope)}"
        return f" where {self.scalars.boolean(scope, 1)}"

    def _condition(self, scope: Scope) -> str:
        """A condition that is a subquery."""
        text, inner = self._source(0)
        where = self._correlated(scope, inner) if self.choices.often(2, 3) else "true"
        name, kind = self.choices.pick([c for c in inner if c[1] in _KEYS] or list(inner))
        left = self.scalars.scalar(kind, scope, 1)
        form = self.choices.pick(
            ("exists ({q})", "not exists ({q})", "{left} in ({q})", "{left} not in ({q})",
             "{left} = any ({q})", "{left} <= all ({q})", "{left} > any ({q})", "{left} <> all ({q})",
             "({left}, 1) in (select x, 1 from ({q}) as n(x))")
        )  # fmt: skip
        self.met[f"subquery {form}"] += 1
        query = f"select {name} from {text} where {where}"
        return form.replace("{q}", query).replace("{left}", left)

    def _plain(self, depth: int) -> Query:
        text, scope = self._joined(depth - 1)
        kinds = [self.choices.pick(_KINDS) for _ in range(1 + self.choices.below(4))]
        items = ", ".join(self.scalars.scalar(kind, scope, 2) for kind in kinds)
        return f"select {items} from {text}{self._where(scope)}", kinds

    def _derived(self, depth: int, width: int) -> tuple[str, Scope]:
        """A derived table of columns that have an order."""
        text, scope = self._joined(depth - 1)
        kinds = [self.choices.pick(_KEYS) for _ in range(width)]
        items = ", ".join(self.scalars.scalar(kind, scope, 1) for kind in kinds)
        alias, names = self._fresh("d"), [f"c{at}" for at in range(width)]
        columns = [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
        query = f"(select {items} from {text}{self._where(scope)}) as {alias}({', '.join(names)})"
        return query, columns

    def _aggregate(self, scope: Scope) -> tuple[str, str]:
        name, kind = self.choices.pick(scope)
        calls = [
            ("count(*)", "int8"), (f"count({name})", "int8"), (f"count(distinct {name})", "int8"),
            (f"min({name})", kind), (f"max({name})", kind),
            (f"string_agg({name}::text, ',' order by {name}::text)", "text"),
            (f"string_agg(distinct {name}::text, '/' order by {name}::text)", "text"),
            (f"array_agg({name} order by {name} desc)::text", "text"),
            (f"array_agg(distinct {name} order by {name})::text", "text"),
            (f"jsonb_agg({name} order by {name})", "jsonb"),
            (f"bool_and({self.scalars.boolean(scope, 1)})", "bool"),
            (f"bool_or({self.scalars.boolean(scope, 1)})", "bool"),
        ]  # fmt: skip
        if kind in _SUMMED:
            calls += [(f"sum({name})::text", "text"), (f"avg({name})::text", "text"),
                      (f"sum(distinct {name})::text", "text")]  # fmt: skip
        if kind in ("int4", "int2", "int8", "num"):
            calls += [(f"{f}({name})::text", "text") for f in ("stddev", "var_pop", "variance")]
        if kind in ("int4", "int2", "int8"):
            calls += [(f"bit_or({name})", kind), (f"bit_xor({name})", kind)]
        call, result = self.choices.pick(calls)
        self.met[f"aggregate {call.split('(')[0]}{' distinct' if 'distinct' in call else ''}"] += 1
        if self.choices.often(1, 4):
            self.met["filter"] += 1
            head, cast, kept = (
                call.partition("::text") if call.endswith("::text") else (call, "", "")
            )
            call = f"{head} filter (where {self.scalars.boolean(scope, 1)}){cast}{kept}"
        if min_or_max(call) and kind in ("bool", "uuid"):
            return "count(*)", "int8"
        return call, result

    def _grouped(self, depth: int) -> Query:
        text, scope = self._derived(depth, 3)
        made = [self._aggregate(scope) for _ in range(1 + self.choices.below(3))]
        keys = list(scope)[: self.choices.below(3)]
        items = [name for name, _ in keys] + [call for call, _ in made]
        kinds = [kind for _, kind in keys] + [kind for _, kind in made]
        group = f" group by {', '.join(name for name, _ in keys)}" if keys else ""
        having = ""
        if self.choices.often(1, 4):
            self.met["having"] += 1
            having = f" having count(*) {self.choices.pick(('>', '<', '='))} 1"
        return f"select {', '.join(items)} from {text}{group}{having}", kinds

    def _grouping_sets(self, depth: int) -> Query:
        text, ((a, kind), (b, other), third) = self._derived(depth, 3)
        sets = self.choices.pick(
            (f"rollup ({a}, {b})", f"cube ({a}, {b})", f"grouping sets (({a}), ({b}), ())",
             f"grouping sets (({a}, {b}), ({b}))", f"{a}, rollup ({b})")
        )  # fmt: skip
        call, result = self._aggregate([third])
        items = f"{a}, {b}, grouping({a}, {b}), {call}"
        return f"select {items} from {text} group by {sets}", [kind, other, "int4", result]

    def _windowed(self, depth: int) -> Query:
        text, scope = self._derived(depth, 2)
        (a, kind), (b, other) = scope
        calls = [
            ("row_number()", "int8"), ("rank()", "int8"), ("dense_rank()", "int8"),
            ("ntile(3)", "int4"), (f"lag({a})", kind), (f"lead({b}, 2)", other),
            (f"first_value({b})", other), (f"last_value({a})", kind), (f"nth_value({b}, 2)", other),
            ("percent_rank()", "float8"), ("cume_dist()", "float8"), (f"count({b})", "int8"),
            (f"count(*) filter (where {self.scalars.boolean(scope, 1)})", "int8"),
        ]  # fmt: skip
        if kind in _SUMMED and kind != "float8":
            calls += [(f"sum({a})", "text"), (f"avg({a})", "text")]
        call, result = self.choices.pick(calls)
        self.met[f"window {call.split('(')[0]}"] += 1
        frame = self.choices.pick(_FRAMES)
        self.met[f"frame{frame}"] += 1
        by = f"partition by {a} " if self.choices.often(1, 2) else ""
        order = f"{b}{self.choices.pick(('', ' desc', ' nulls first'))}, {a}"
        item = f"({call} over ({by}order by {order}{frame}))" + (
            "::text" if result == "text" else ""
        )
        return f"select {a}, {item} from {text}", [kind, result]

    def _distinct(self, depth: int) -> Query:
        text, scope = self._derived(depth, 2)
        (a, kind), (b, other) = scope
        if self.choices.often(1, 2):
            order = f"{a}, {b}{self.choices.pick((' desc', ''))}"
            return f"select distinct on ({a}) {a}, {b} from {text} order by {order}", [kind, other]
        return f"select distinct {a}, {b} from {text}", [kind, other]

    def _subqueries(self, depth: int) -> Query:
        text, scope = self._joined(depth - 1)
        inside, inner = self._source(0)
        where = self._correlated(scope, inner)
        name, kind = self.choices.pick([c for c in inner if c[1] in _KEYS] or list(inner))
        forms = [
            (f"(select count(*) from {inside} where {where})", "int8"),
            (f"(select string_agg({name}::text, ',' order by {name}::text) from {inside} where {where})", "text"),
            (f"array(select {name} from {inside} where {where} order by 1)::text", "text"),
            (f"(select {name} from {inside} where {where} order by 1 limit 1)", kind),
            (f"({self._condition(scope)})", "bool"),
        ]  # fmt: skip
        item, result = self.choices.pick(forms)
        self.met[f"scalar subquery {forms.index((item, result))}"] += 1
        other = self.choices.pick(_KINDS)
        return f"select {self.scalars.scalar(other, scope, 1)}, {item} from {text}", [other, result]

    # --- several queries

    def _set(self, depth: int) -> Query:
        kinds = [self.choices.pick(_KEYS) for _ in range(1 + self.choices.below(2))]
        parts = []
        for _ in range(2):
            text, scope = self._joined(depth - 1)
            items = ", ".join(self.scalars.scalar(kind, scope, 1) for kind in kinds)
            parts.append(f"select {items} from {text}{self._where(scope)}")
        op = self.choices.pick(
            ("union all", "union", "intersect", "except", "intersect all", "except all")
        )
        self.met[op] += 1
        return f"({parts[0]}) {op} ({parts[1]})", kinds

    def _with(self, depth: int) -> Query:
        body, kinds = self.query(depth - 1)
        name, columns = self._fresh("cte"), ", ".join(f"c{at}" for at in range(len(kinds)))
        self._ctes.append((name, kinds))
        text, found = self.query(depth - 1)
        self._ctes.pop()
        names = ", ".join(f"c{at}" for at in range(len(found)))
        return (
            f"with {name}({columns}) as ({body}) select * from ({text}) as {self._fresh('o')}({names})",
            found,
        )


def min_or_max(call: str) -> bool:
    """Whether a call is of min or max."""
    return call.startswith(("min(", "max("))
