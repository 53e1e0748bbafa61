# ruff: noqa: E501 - tables of texts are read by line
"""Queries over random tables: joins, subqueries, aggregates, windows, set operations, CTEs.

Every query has one answer as a multiset: a LIMIT comes with an order over all columns, an aggregate
that depends on an order has one, windows are ordered by all columns of what they range over.
"""

from __future__ import annotations

from collections.abc import Callable

from support.sql.any.aggregates import FRAMES, RANGES, calls, windows
from support.sql.any.places import Places
from support.sql.any.scalars import Scope
from support.sql.any.sources import Query
from support.sql.any.values import KEYS, TYPES

#: What a select list has: every type can be in it.
_KINDS = list(TYPES)
_LIMITS = ("", " limit 3", " offset 1", " limit 2 offset 1", " fetch first 2 rows only",
           " fetch first 1 row with ties", " limit null", " limit all offset 2 rows")  # fmt: skip


class Queries(Places):
    """One stream of queries."""

    def next(self, *, named: bool = False) -> tuple[str, bool]:
        """A whole query, and whether the order of its rows is part of its answer.

        With `named` every column has a name of its own, as a view needs it.
        """
        self.scalars.bold = self.choices.often(1, 3)
        text, kinds = self.query(2)
        bare = not named and self.choices.often(1, 3)
        names = [str(at + 1) if bare else f"c{at}" for at in range(len(kinds))]
        whole = text if bare else f"select * from ({text}) as answer({', '.join(names)})"
        if not self.choices.often(1, 4) or (bare and " order by " in text):
            return whole, False
        ends = ("", " desc", " nulls first", " desc nulls last", " asc nulls last")
        order = ", ".join(f"{name}{self.choices.pick(ends)}" for name in names)
        self.met["order by"] += 1
        return f"{whole} order by {order}{self.choices.pick(_LIMITS)}", True

    def query(self, depth: int) -> Query:
        """A query of some columns."""
        forms: list[Callable[[int], Query]] = [
            self._plain, self._grouped, self._windowed, self._set, self._with, self._distinct,
            self._subqueries, self._grouping_sets, self._ranged, self._over_groups, self._recursive,
            self._rowsets, self._places, self._dependent, self._rows, self._nested,
            self._named_windows,
        ]  # fmt: skip
        if depth <= 0:
            return self._plain(0)
        form = self.choices.pick(forms)
        self.met[f"query {form.__name__.strip('_')}"] += 1
        return form(depth)

    # --- SELECT

    def _where(self, scope: Scope) -> str:
        if not self.choices.often(1, 2):
            return ""
        if self.choices.often(1, 3):
            return f" where {self.condition(scope)}"
        return f" where {self.scalars.boolean(scope, 1)}"

    def condition(self, scope: Scope) -> str:
        """A condition that is a subquery."""
        text, inner = self.source(0)
        where = self.correlated(scope, inner) if self.choices.often(2, 3) else "true"
        name, kind = self.choices.pick([c for c in inner if c[1] in KEYS] or list(inner))
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
        text, scope = self.joined(depth - 1)
        kinds = [self.choices.pick(_KINDS) for _ in range(1 + self.choices.below(4))]
        items = ", ".join(self.scalars.scalar(kind, scope, 2) for kind in kinds)
        return f"select {items} from {text}{self._where(scope)}", kinds

    def _derived(self, depth: int, width: int) -> tuple[str, Scope]:
        """A derived table of columns that have an order."""
        text, scope = self.joined(depth - 1)
        kinds = [self.choices.pick(KEYS) for _ in range(width)]
        items = ", ".join(self.scalars.scalar(kind, scope, 1) for kind in kinds)
        alias, names = self.fresh("d"), [f"c{at}" for at in range(width)]
        columns = [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
        query = f"(select {items} from {text}{self._where(scope)}) as {alias}({', '.join(names)})"
        return query, columns

    def _aggregate(self, scope: Scope) -> tuple[str, str]:
        name, kind = self.choices.pick(scope)
        by = self.choices.pick([each for each, own in scope if own in KEYS] or [name])
        call, result = self.choices.pick(calls(name, kind, self.scalars.boolean(scope, 1), by))
        distinct = " distinct" if "distinct" in call else ""
        self.met[f"aggregate {call.split('(')[0]}{distinct}"] += 1
        if self.choices.often(1, 4) and not call.startswith("("):
            self.met["filter"] += 1
            casts = call.endswith("::text")
            head = call.removesuffix("::text") if casts else call
            filtered = f"{head} filter (where {self.scalars.boolean(scope, 1)})"
            call = f"({filtered})::text" if casts else filtered
        return call, result

    def _grouped(self, depth: int) -> Query:
        text, scope = self._derived(depth, 3)
        made = [self._aggregate(scope) for _ in range(1 + self.choices.below(3))]
        keys = list(scope)[: self.choices.below(3)]
        items = [name for name, _ in keys] + [call for call, _ in made]
        kinds = [kind for _, kind in keys] + [kind for _, kind in made]
        by = [name for name, _ in keys]
        if keys and self.choices.often(1, 5):
            self.met["group by position"] += 1
            by = [str(at + 1) for at in range(len(keys))]
        group = f" group by {', '.join(by)}" if keys else ""
        having = ""
        if self.choices.often(1, 4):
            self.met["having"] += 1
            tested = self.choices.pick(("count(*)", f"count(distinct {scope[-1][0]})"))
            having = f" having {tested} {self.choices.pick(('>', '<', '='))} 1"
        return f"select {', '.join(items)} from {text}{group}{having}", kinds

    def _grouping_sets(self, depth: int) -> Query:
        text, ((a, kind), (b, other), (c, last), fourth) = self._derived(depth, 4)
        sets = self.choices.pick(
            (f"rollup ({a}, {b})", f"cube ({a}, {b})", f"grouping sets (({a}), ({b}), ())",
             f"grouping sets (({a}, {b}), ({b}))", f"{a}, rollup ({b})",
             f"rollup ({a}), rollup ({b})", f"cube (({a}, {b}))", f"distinct rollup ({a}, {b}), cube ({a})",
             f"grouping sets (rollup ({a}), cube ({b}))", f"rollup (({a}, {b}), {a})")
        )  # fmt: skip
        call, result = self._aggregate([(c, last), fourth])
        items, kinds = f"{a}, {b}, grouping({a}, {b}), {call}", [kind, other, "int4", result]
        more = self.choices.below(6)
        if more == 5:
            self.met["having grouping"] += 1
            sets = f"{sets} having grouping({b}) = 0 or count({c}) > 1"
        elif more == 4:
            self.met["window over grouping"] += 1
            items += f", (count(*) over (partition by grouping({a}, {b})))::text"
            kinds.append("text")
        elif more == 3:
            self.met["grouping in an expression"] += 1
            items += f", case when grouping({a}) = 1 then 'all' else {a}::text end"
            kinds.append("text")
        return f"select {items} from {text} group by {sets}", kinds

    def _windowed(self, depth: int) -> Query:
        text, scope = self._derived(depth, 2)
        (a, kind), (b, other) = scope
        condition = self.scalars.boolean(scope, 1)
        frame = self.choices.pick(FRAMES)
        by = f"partition by {a} " if self.choices.often(1, 2) else ""
        # Equal values are written alike, or told apart: which comes first is nobody's promise.
        order = f"{b}{self.choices.pick(('', ' desc', ' nulls first'))}, {a}, {b}::text, {a}::text"
        over = f"({by}order by {order}{frame})"
        made = [self.choices.pick(windows(a, kind, b, other, condition))
                for _ in range(1 + self.choices.below(2))]  # fmt: skip
        for call, _ in made:
            self.met[f"window {call.split('(')[0]}"] += 1
        self.met[f"frame{frame}"] += 1
        clause = ""
        if self.choices.often(1, 4):
            self.met["window clause"] += 1
            clause, over = f" window w as {over}", "w"
        items = [f"({call} over {over})" + ("::text" if result == "text" else "")
                 for call, result in made]  # fmt: skip
        kinds = [kind, *(result for _, result in made)]
        return f"select {', '.join((a, *items))} from {text}{clause}", kinds

    def _ranged(self, depth: int) -> Query:
        """Frames by value: what is in them does not depend on the order of equal rows."""
        text, scope = self._derived(depth, 2)
        (a, kind), (b, other) = scope
        if other not in RANGES:
            return self._windowed(depth)
        frame = self.choices.pick(RANGES[other])
        call = self.choices.pick(
            (
                "count(*)",
                f"count({a})",
                f"sum({b})::text" if other in ("int4", "num") else "count(*)",
            )
        )
        head, cast, rest = call.partition("::text")
        by = f"partition by {a} " if self.choices.often(1, 3) else ""
        self.met[f"frame {frame} of {other}"] += 1
        end = self.choices.pick(("", " desc", " nulls first"))
        item = f"({head} over ({by}order by {b}{end} {frame})){cast}{rest}"
        return f"select {a}, {b}, {item} from {text}", [kind, other, "text" if cast else "int8"]

    def _over_groups(self, depth: int) -> Query:
        """Windows over groups, and sums of sums."""
        text, ((a, kind), (b, _), _) = self._derived(depth, 3)
        item = self.choices.pick(
            ("sum(count(*)) over ()", f"rank() over (order by count({b}) desc)", "max(count(*)) over ()",
             f"sum(count(distinct {b})) over (order by {a})", f"lag(count(*)) over (order by {a})",
             "count(*) * 100 / sum(count(*)) over ()")
        )  # fmt: skip
        return f"select {a}, count(*), ({item})::text from {text} group by {a}", [
            kind,
            "int8",
            "text",
        ]

    def _recursive(self, depth: int) -> Query:
        text, scope = self.joined(depth - 2)
        kind, name = self.choices.pick(KEYS), self.fresh("r")
        item = self.scalars.scalar(kind, scope, 1)
        word = self.choices.pick(("union all", "union"))
        step = self.choices.pick(
            (f"select n + 1, x from {name} where n < 3",
             f"select n + s, x from {name}, generate_series(1, 2) as g(s) where n < 3",
             f"select n + 1, x from {name} where n < 3 and x is not null")
        )  # fmt: skip
        self.met[f"recursive {word}"] += 1
        base = f"select 0, {item} from {text}{self._where(scope)}"
        return f"with recursive {name}(n, x) as (({base}) {word} {step}) select n, x from {name}", [
            "int4",
            kind,
        ]

    def _rowsets(self, depth: int) -> Query:
        """Functions that give several rows, in the select list."""
        text, scope = self.joined(depth - 1)
        form, kind = self.choices.pick(
            (("unnest({int4s})", "int4"), ("generate_series(1, 2)", "int4"), ("unnest({texts})", "text"),
             ("unnest({enums})", "enum"), ("unnest({ranges})", "int4range"), ("unnest({multirange})", "int4range"),
             ("json_array_elements(json_build_array({json}, {int4}))", "json"),
             ("unnest(enum_range({enum}))", "enum"), ("jsonb_array_elements(jsonb_build_array({int4}, {text}))", "jsonb"),
             ("regexp_split_to_table({text}, '')", "text"), ("generate_series(1, length({text}))", "int4"))
        )  # fmt: skip
        self.met[f"rows of {form.split('(')[0]}"] += 1
        other = self.choices.pick(_KINDS)
        items = f"{self.scalars.scalar(other, scope, 1)}, {self.scalars.filled(form, scope, 0)}"
        return f"select {items} from {text}{self._where(scope)}", [other, kind]

    def _distinct(self, depth: int) -> Query:
        text, scope = self._derived(depth, 2)
        (a, kind), (b, other) = scope
        if self.choices.often(1, 2):
            order = f"{a}, {b}{self.choices.pick((' desc', ''))}"
            return f"select distinct on ({a}) {a}, {b} from {text} order by {order}", [kind, other]
        return f"select distinct {a}, {b} from {text}", [kind, other]

    def _subqueries(self, depth: int) -> Query:
        text, scope = self.joined(depth - 1)
        inside, inner = self.source(0)
        where = self.correlated(scope, inner)
        name, kind = self.choices.pick([c for c in inner if c[1] in KEYS] or list(inner))
        forms = [
            (f"(select count(*) from {inside} where {where})", "int8"),
            (f"(select string_agg({name}::text, ',' order by {name}::text) from {inside} where {where})", "text"),
            (f"array(select {name} from {inside} where {where} order by 1, {name}::text)::text", "text"),
            (f"(select {name} from {inside} where {where} order by 1, {name}::text limit 1)", kind),
            (f"({self.condition(scope)})", "bool"),
        ]  # fmt: skip
        item, result = self.choices.pick(forms)
        self.met[f"scalar subquery {forms.index((item, result))}"] += 1
        other = self.choices.pick(_KINDS)
        return f"select {self.scalars.scalar(other, scope, 1)}, {item} from {text}", [other, result]

    # --- several queries

    def _set(self, depth: int) -> Query:
        kinds = [self.choices.pick(KEYS) for _ in range(1 + self.choices.below(2))]
        ops = ("union all", "union", "intersect", "except", "intersect all", "except all")
        whole = self._arm(depth, kinds)
        for _ in range(1 + self.choices.below(2)):
            op = self.choices.pick(ops)
            self.met[op] += 1
            if self.choices.often(1, 4):
                whole = f"({whole})"
            whole = f"{whole} {op} {self._arm(depth, kinds)}"
        return whole, kinds

    def _arm(self, depth: int, kinds: list[str]) -> str:
        text, scope = self.joined(depth - 1)
        items = ", ".join(self.scalars.scalar(kind, scope, 1) for kind in kinds)
        query = f"select {items} from {text}{self._where(scope)}"
        if self.choices.often(1, 6):
            self.met["limit in a set operation"] += 1
            order = ", ".join(str(at + 1) for at in range(len(kinds)))
            query += f" order by {order} limit 2"
        return f"({query})"

    def _with(self, depth: int) -> Query:
        body, kinds = self.query(depth - 1)
        name, columns = self.fresh("cte"), ", ".join(f"c{at}" for at in range(len(kinds)))
        self.ctes.append((name, kinds))
        text, found = self.query(depth - 1)
        self.ctes.pop()
        names = ", ".join(f"c{at}" for at in range(len(found)))
        how = self.choices.pick(("", "", "materialized ", "not materialized "))
        outer = f"select * from ({text}) as {self.fresh('o')}({names})"
        return f"with {name}({columns}) as {how}({body}) {outer}", found
