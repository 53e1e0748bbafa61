"""Random queries with every operator that a view may have, beyond those of `support.sql.generator`.

CTEs, recursion, VALUES, DISTINCT ON, grouping sets, windows with frames, lateral subqueries and
functions, USING, arrays and documents, the other aggregates. Every query still has one answer:
where rows of equal rank could be told apart, the order goes on over all columns. With `fails` some
scalars have no value on some rows.
"""

from __future__ import annotations

from typing import Any

from support.sql.generator import KINDS, Columns, Generator

_LITERALS = {
    "ints": ["array[1, 2]", "'{}'::int[]", "array[2, null]", "null::int[]"],
    "json": ["'{\"n\": 1}'::jsonb", "'[1, 2]'::jsonb", "null::jsonb"],
}
_DOCUMENTS = [None, '{"n": 1, "tags": ["x", "y"]}', '{"n": 2}', "[1, 2]", '"x"', "{}"]
_ARRAYS = [None, (), (1, 2, 2), (3, None), (0,)]
_FRAMES = [
    "",
    " rows between 1 preceding and 1 following",
    " rows between unbounded preceding and current row",
    " rows between current row and unbounded following exclude current row",
    " rows between 2 preceding and 1 preceding",
    " range between unbounded preceding and current row",
    " range between current row and unbounded following",
    " groups between 1 preceding and current row",
    " groups between 1 preceding and 1 following exclude ties",
]


class WideGenerator(Generator):
    """One stream of queries."""

    def __init__(self, seed: int, fails: float = 0) -> None:
        super().__init__(seed)
        self.fails = fails
        self.ctes: list[tuple[str, list[str]]] = []

    # --- scalars

    def scalar(self, kind: str, scope: Columns, depth: int) -> str:
        if kind not in _LITERALS:
            return super().scalar(kind, scope, depth)
        known = [name for name, k in scope if k == kind]
        return str(self.pick(known) if known and self.chance(0.8) else self.pick(_LITERALS[kind]))

    def compound(self, kind: str, scope: Columns, depth: int) -> str:
        if kind == "int" and self.chance(self.fails):
            failing = [f"(6 / {self.scalar('int', scope, depth)})", "('x' || 1)::int"]
            return str(self.pick([failing[0], *failing]))
        ints, json = (self.scalar(k, scope, 0) for k in ("ints", "json"))
        forms = {
            "int": [f"({ints})[1]", f"cardinality({ints})", f"coalesce(({ints})[2], 7)"],
            "text": [
                f"({json} ->> 'n')",
                f"jsonb_typeof({json})",
                f"({json} #>> '{{tags,0}}')",
                f"array_to_string({ints}, '-')",
            ],
        }
        known = {k for _, k in scope}
        if kind in forms and known & {"ints", "json"} and self.chance(0.3):
            return str(self.pick(forms[kind]))
        return super().compound(kind, scope, depth)

    def boolean(self, scope: Columns, depth: int) -> str:
        if not self.chance(0.15):
            return super().boolean(scope, depth)
        ints, json = (self.scalar(k, scope, 0) for k in ("ints", "json"))
        text, number = (self.scalar(k, scope, depth - 1) for k in ("text", "int"))
        forms = [f"{text} ilike 'O%'", f"{text} ~ '^[a-o]'"]
        if {k for _, k in scope} & {"ints", "json"}:
            forms += [f"{number} = any({ints})", f"{json} @> '{{\"n\": 1}}'", f"{json} ? 'n'"]
        return f"({self.pick(forms)})"

    # --- FROM

    def source(self, depth: int, outer: Columns) -> tuple[str, Columns]:
        if self.ctes and self.chance(0.5):
            name, kinds = self.pick(self.ctes)
            alias = self.fresh("w")
            return f"{name} as {alias}", [(f"{alias}.c{at}", k) for at, k in enumerate(kinds)]
        if self.chance(0.06):
            alias = self.fresh("x")
            rows = ", ".join(
                f"({self.scalar('int', [], 0)}, {self.scalar('text', [], 0)})"
                for _ in range(self.pick([1, 3]))
            )
            columns = [(f"{alias}.i", "int"), (f"{alias}.s", "text")]
            return f"(values {rows}) as {alias}(i, s)", columns
        text, scope = super().source(depth, outer)
        if text.startswith("v as "):
            alias = text.removeprefix("v as ")
            scope = [*scope, (f"{alias}.l", "ints"), (f"{alias}.j", "json")]
        return text, scope

    def joined(self, depth: int) -> tuple[str, Columns]:
        if self.chance(0.1):
            a, b = self.fresh("t"), self.fresh("u")
            kind = self.pick(["join", "left join", "right join", "full join"])
            scope = [(f"{a}.a", "int"), (f"{a}.b", "text"), (f"{b}.a", "int"), (f"{b}.x", "int")]
            on = self.pick(["using (a)", "using (a)", f"on {a}.a < {b}.x" if kind[0] != "f" else
                            f"on {a}.a = {b}.x"])  # fmt: skip
            return f"t as {a} {kind} u as {b} {on}", scope
        text, scope = super().joined(depth)
        if self.chance(0.25):
            kind = self.pick(["cross join lateral", "left join lateral"])
            more, columns = self.lateral(scope)
            on = f" on {self.boolean([*scope, *columns], 1)}" if kind[0] == "l" else ""
            text, scope = f"{text} {kind} {more}{on}", [*scope, *columns]
        return text, scope

    def lateral(self, scope: Columns) -> tuple[str, Columns]:
        """A subquery or a function of the rows before it."""
        arrays = [name for name, k in scope if k == "ints"]
        documents = [name for name, k in scope if k == "json"]
        alias = self.fresh("f")
        forms: list[tuple[str, Columns]] = []
        for name in arrays:
            forms.append((f"unnest({name}) as {alias}(e)", [(f"{alias}.e", "int")]))
            both = [(f"{alias}.e", "int"), (f"{alias}.n", "big")]
            forms.append((f"unnest({name}) with ordinality as {alias}(e, n)", both))
        for name in documents:
            guarded = f"case when jsonb_typeof({name}) = 'array' then {name} end"
            columns = [(f"{alias}.e", "text")]
            forms.append((f"jsonb_array_elements_text({guarded}) as {alias}(e)", columns))
        if not forms or self.chance(0.4):
            forms = [self.lateral_query(scope, alias)]
        made: tuple[str, Columns] = self.pick(forms)
        return made

    def lateral_query(self, scope: Columns, alias: str) -> tuple[str, Columns]:
        text, inner = self.source(0, [])
        where = self.correlation(scope, inner)
        kind = self.pick([k for _, k in inner if k in KINDS])
        item = next(n for n, k in inner if k == kind)
        limit = f"select {item} from {text} where {where} order by 1 desc nulls last limit 2"
        total = f"select count(*), max({item}) from {text} where {where}"
        some = f"select distinct {item} from {text} where {where}"
        forms = [
            (f"({limit}) as {alias}(m)", [(f"{alias}.m", kind)]),
            (f"({total}) as {alias}(n, m)", [(f"{alias}.n", "big"), (f"{alias}.m", kind)]),
            (f"({some}) as {alias}(m)", [(f"{alias}.m", kind)]),
        ]
        made: tuple[str, Columns] = self.pick(forms)
        return made

    def correlation(self, scope: Columns, inner: Columns) -> str:
        pairs = [(a, b) for a, k in inner for b, j in scope if k == j and k in KINDS]
        if not pairs:
            return self.boolean([*inner, *scope], 1)
        a, b = self.pick(pairs)
        return f"{a} {self.pick(['=', '=', '=', '<', 'is not distinct from'])} {b}"

    # --- queries

    def query(self, depth: int, outer: Columns) -> tuple[str, list[str]]:
        if depth <= 0 or self.chance(0.4):
            return super().query(depth, outer)
        forms = [
            self.with_query,
            self.recursion,
            self.distinct_on,
            self.framed,
            self.framed,
            self.grouping,
            self.grouping,
            self.aggregates,
            self.subqueries,
            self.subqueries,
        ]
        made: tuple[str, list[str]] = self.pick(forms)(depth)
        return made

    def listed(self, depth: int, alias: str, width: int) -> tuple[str, list[tuple[str, str]]]:
        """A derived table of so many columns, of types that have an order."""
        text, scope = self.joined(depth - 1)
        where = f" where {self.condition(scope, depth - 1)}" if self.chance(0.4) else ""
        kinds = [self.pick(KINDS) for _ in range(width)]
        items = ", ".join(self.scalar(kind, scope, 1) for kind in kinds)
        names = [f"c{at}" for at in range(width)]
        columns = [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
        return f"(select {items} from {text}{where}) as {alias}({', '.join(names)})", columns

    def with_query(self, depth: int) -> tuple[str, list[str]]:
        body, kinds = self.query(depth - 1, [])
        name = self.fresh("cte")
        columns = ", ".join(f"c{at}" for at in range(len(kinds)))
        self.ctes.append((name, kinds))
        text, found = self.query(depth - 1, [])
        self.ctes.pop()
        names = ", ".join(f"c{at}" for at in range(len(found)))
        outside = f"select * from ({text}) as {self.fresh('o')}({names})"
        return f"with {name}({columns}) as ({body}) {outside}", found

    def recursion(self, depth: int) -> tuple[str, list[str]]:
        """Who can be reached: UNION, so that it ends."""
        del depth
        name, u = self.fresh("reach"), self.fresh("u")
        first = f"select a, x from u where {self.boolean([('a', 'int'), ('x', 'int')], 1)}"
        step = f"select {name}.p, {u}.x from {name} join u as {u} on {u}.a = {name}.q"
        body = f"{first} union {step}"
        return f"with recursive {name}(p, q) as ({body}) select p, q from {name}", ["int", "int"]

    def distinct_on(self, depth: int) -> tuple[str, list[str]]:
        alias = self.fresh("d")
        text, columns = self.listed(depth, alias, self.pick([2, 3]))
        names = [name for name, _ in columns]
        order = ", ".join(
            f"{name}{self.pick(['', ' desc', ' desc nulls last', ' nulls first'])}"
            for name in names
        )
        sql = f"select distinct on ({names[0]}) {', '.join(names)} from {text} order by {order}"
        return sql, [kind for _, kind in columns]

    def framed(self, depth: int) -> tuple[str, list[str]]:
        alias = self.fresh("d")
        text, columns = self.listed(depth, alias, 2)
        (a, kind), (b, other) = columns
        number = next((n for n, k in columns if k in ("int", "big", "num")), None)
        calls = {
            "row_number()": "big",
            "ntile(2)": "int",
            f"lag({a})": kind,
            f"lead({b}, 2)": other,
            f"first_value({b})": other,
            f"last_value({a})": kind,
            f"nth_value({b}, 2)": other,
            "percent_rank()": "float",
            "cume_dist()": "float",
            f"count({b})": "big",
            f"max({a})": kind,
            f"count(*) filter (where {self.boolean(columns, 1)})": "big",
        }
        if number is not None:
            calls |= {f"sum({number})": "num", f"avg({number})": "num"}
        call = self.pick(calls)
        by = f"partition by {a} " if self.chance(0.5) else ""
        over = f"{by}order by {b}{self.pick(['', ' desc'])}, {a}{self.pick(_FRAMES)}"
        item = f"({call} over ({over}))" + ("::numeric" if calls[call] == "num" else "")
        named = f"select {a}, {call} over w from {text} window w as ({over})"
        if calls[call] != "num" and self.chance(0.2):
            return named, [kind, calls[call]]
        return f"select {a}, {item} from {text}", [kind, calls[call]]

    def grouping(self, depth: int) -> tuple[str, list[str]]:
        alias = self.fresh("d")
        text, ((a, kind), (b, other), (c, third)) = self.listed(depth, alias, 3)
        sets = self.pick(
            [
                f"grouping sets (({a}), ({b}), ())",
                f"grouping sets (({a}, {b}), ({b}))",
                f"rollup ({a}, {b})",
                f"cube ({a}, {b})",
                f"{a}, rollup ({b})",
            ]
        )
        having = " having count(*) > 1" if self.chance(0.2) else ""
        items = f"{a}, {b}, grouping({a}, {b}), count(distinct {c}), max({c})"
        kinds = [kind, other, "int", "big", third]
        return f"select {items} from {text} group by {sets}{having}", kinds

    def aggregates(self, depth: int) -> tuple[str, list[str]]:
        """Several in one query: those for which sums are enough, and those that need their rows."""
        alias = self.fresh("d")
        text, ((a, kind), (b, other)) = self.listed(depth, alias, 2)
        condition = self.boolean([(a, kind), (b, other)], 1)
        calls = {
            f"array_to_string(array_agg({b} order by {b} desc), ',')": "text",
            f"string_agg(distinct {b}::text, '/' order by {b}::text)": "text",
            f"bool_and({condition})::text": "text",
            f"bool_or({condition})::text": "text",
            f"every({condition})::text": "text",
            f"min({b})": other,
            f"count(*) filter (where {condition})": "big",
            f"count(distinct {b}) filter (where {condition})": "big",
        }
        if other in ("int", "big", "num"):
            calls |= {f"round({name}({b}), 6)": "num" for name in (
                "stddev", "variance", "var_pop", "stddev_pop", "avg")}  # fmt: skip
            calls |= {f"round({name}({b}::float8 / 3)::numeric, 6)": "num" for name in (
                "sum", "avg", "stddev", "var_pop")}  # fmt: skip
            calls[f"sum(distinct {b})::numeric"] = "num"
        chosen = self.random.sample(list(calls), 2)
        keys, kinds = ([a], [kind]) if self.chance(0.8) else ([], [])
        group = f" group by {a}" if keys else ""
        having = f" having {self.boolean([('count(*)', 'big')], 1)}" if self.chance(0.2) else ""
        select = f"select {', '.join([*keys, *chosen])} from {text}{group}{having}"
        return select, [*kinds, *(calls[each] for each in chosen)]

    def subqueries(self, depth: int) -> tuple[str, list[str]]:
        """Scalars that are queries of the row outside, or of nothing."""
        text, scope = self.joined(depth - 1)
        inside, inner = self.source(0, [])
        where = self.correlation(scope, inner) if self.chance(0.5) else "true"
        kind = self.pick([k for _, k in inner if k in KINDS])
        item = next(n for n, k in inner if k == kind)
        both = f"{item} from {inside} where {where}"
        left = self.scalar(kind, scope, 1)
        forms = {
            f"(select max({item}) from {inside} where {where})": kind,
            f"(select {both} order by 1 limit 1)": kind,
            f"(select string_agg({item}::text, ',' order by {item}::text) from {inside} "
            f"where {where})": "text",
            f"array_to_string(array(select {both} order by 1), ',')": "text",
            f"(exists (select {both}))::text": "text",
            f"({left} in (select {both}))::text": "text",
            f"({left} not in (select {both}))::text": "text",
            f"({left} > any (select {both}))::text": "text",
            f"({left} <= all (select {both}))::text": "text",
            f"(({left}, 1) in (select {item}, 1 from {inside} where {where}))::text": "text",
        }
        chosen = self.pick(forms)
        other = self.pick(KINDS)
        return f"select {self.scalar(other, scope, 1)}, {chosen} from {text}", [
            other,
            forms[chosen],
        ]

    # --- rows

    def rows(self) -> dict[str, dict[tuple[Any, ...], int]]:
        made = super().rows()
        made["v"] = {
            (k, z, self.pick(_ARRAYS), self.pick(_DOCUMENTS)): n
            for (k, z, *_), n in made["v"].items()
        }
        return made
