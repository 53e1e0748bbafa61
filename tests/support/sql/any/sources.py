"""FROM: tables, derived tables, VALUES, functions, references of CTEs, and joins of every kind.

What a query ranges over comes with its scope: the columns that may be named, with their kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from support.sql.any.choices import Choices
from support.sql.any.scalars import Scalars, Scope
from support.sql.any.values import KEYS, Table

Query = tuple[str, list[str]]

#: Functions in FROM, what they are made of, and the kinds of what they give.
_TABLE_FUNCTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("generate_series(1, 3)", ("int4",)),
    ("generate_series(3, 1, -2)", ("int4",)),
    ("generate_series(0.5, 2, 0.75)", ("numeric",)),
    ("generate_series(timestamp '2020-01-30', '2020-03-31', '1 mon')", ("timestamp",)),
    ("unnest({int4s})", ("int4",)),
    ("unnest({texts})", ("text",)),
    ("unnest({enums})", ("enum",)),
    ("unnest({inets}, {ranges})", ("inet", "int4range")),
    ("unnest({multirange})", ("int4range",)),
    ("json_each(json_build_object('a', {int4}, 'b', {json}))", ("text", "json")),
    ("json_array_elements_text(json_build_array({inet}, {enum}))", ("text",)),
    ("unnest({int4s}, {texts})", ("int4", "text")),
    ("string_to_table({text}, ' ')", ("text",)),
    ("regexp_split_to_table({text}, 'a')", ("text",)),
    ("jsonb_each(jsonb_build_object('a', {int4}, 'b', {text}))", ("text", "jsonb")),
    ("jsonb_each_text(jsonb_build_object('x', {date}, 'y', {bool}))", ("text", "text")),
    ("jsonb_array_elements(jsonb_build_array({int4}, {text}, null))", ("jsonb",)),
    ("jsonb_array_elements_text(jsonb_build_array({numeric}, {bool}))", ("text",)),
    ("jsonb_object_keys(jsonb_build_object('k', {text}))", ("text",)),
    ("regexp_matches({text}, '.', 'g')", ("texts",)),
    ("generate_subscripts({int4s}, 1)", ("int4",)),
    ("rows from (generate_series(1, 2), unnest({texts}))", ("int4", "text")),
)  # fmt: skip


class Sources:
    """What queries range over."""

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
        self.ctes: list[Query] = []

    def query(self, depth: int) -> Query:
        """A query of some columns."""
        raise NotImplementedError

    def condition(self, scope: Scope) -> str:
        """A condition that is a subquery."""
        raise NotImplementedError

    def fresh(self, stem: str) -> str:
        """A name that this statement has nowhere else."""
        self._names += 1
        return f"{stem}{self._names}"

    def source(self, depth: int) -> tuple[str, Scope]:
        """One thing to range over."""
        choices = self.choices
        form = choices.below(9)
        if self.ctes and form in (1, 2, 3):
            name, kinds = choices.pick(self.ctes)
            alias = self.fresh("w")
            self.met["reference of a CTE"] += 1
            return f"{name} as {alias}", [(f"{alias}.c{at}", k) for at, k in enumerate(kinds)]
        if form == 4 and depth > 0:
            text, kinds = self.query(depth - 1)
            return self._named(f"({text})", self.fresh("q"), kinds)
        if form == 5:
            kinds = [choices.pick(KEYS) for _ in range(2)]
            rows = ", ".join(
                f"({', '.join(self.scalars.scalar(kind, [], 0) for kind in kinds)})"
                for _ in range(1 + choices.below(3))
            )
            self.met["values"] += 1
            return self._named(f"(values {rows})", self.fresh("v"), kinds)
        if form == 6:
            return self._function([])
        return self._table()

    def _table(self) -> tuple[str, Scope]:
        choices, table = self.choices, self.choices.pick(self.tables)
        alias = self.fresh("t")
        scope = [(f"{alias}.{n}", kind) for n, kind in table.columns]
        if choices.often(1, 10):
            self.met["whole row"] += 1
            scope += [(f"({alias})::text", "text"), (f"to_jsonb({alias})", "jsonb")]
        if choices.often(1, 12):
            self.met["ONLY"] += 1
            return f"only {table.name} as {alias}", scope
        return f"{table.name} as {alias}", scope

    def _named(self, text: str, alias: str, kinds: Sequence[str]) -> tuple[str, Scope]:
        names = [f"c{at}" for at in range(len(kinds))]
        scope = [(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
        return f"{text} as {alias}({', '.join(names)})", scope

    def _function(self, scope: Scope) -> tuple[str, Scope]:
        form, kinds = self.choices.pick(_TABLE_FUNCTIONS)
        self.met[f"from {form.split('(')[0]}"] += 1
        text = self.scalars.filled(form, scope, 0)
        if self.choices.often(1, 3):
            self.met["with ordinality"] += 1
            return self._named(f"{text} with ordinality", self.fresh("f"), (*kinds, "int8"))
        return self._named(text, self.fresh("f"), kinds)

    def joined(self, depth: int) -> tuple[str, Scope]:
        """Sources, joined."""
        text, found = self.source(depth)
        scope = list(found)
        for number in range(self.choices.below(3)):
            kind = self.choices.pick(
                ("join", "left join", "right join", "full join", "cross join", "lateral", "using",
                 "inside", "comma")
            )  # fmt: skip
            if kind == "lateral":
                text, scope = self._with_lateral(text, scope)
            elif kind == "using" and number == 0 and _is_table(text, scope):
                text, scope = self._with_using(text, scope)
            elif kind == "inside":
                (a, left), (b, right) = self.source(0), self.source(0)
                word, inner = (self.choices.pick(("join", "left join", "full join")) for _ in "ab")
                self.met[f"{word} ({inner})"] += 1
                on = self._on(left, right, only_equal=inner == "full join")
                whole = self._on(scope, [*left, *right], only_equal=word == "full join")
                text += f" {word} ({a} {inner} {b} on {on}) on {whole}"
                scope += [*left, *right]
            elif kind == "comma" and number == 0:
                more, other = self.source(depth - 1)
                self.met["comma"] += 1
                text += f", {more}"
                scope += other
                break
            else:
                word = kind if "join" in kind else "join"
                more, other = self.source(depth - 1)
                self.met[word] += 1
                text += f" {word} {more}"
                if word != "cross join":
                    text += f" on {self._on(scope, other, only_equal=word == 'full join')}"
                scope += other
        return text, scope

    def _with_lateral(
        self, text: str, scope: list[tuple[str, str]]
    ) -> tuple[str, list[tuple[str, str]]]:
        more, columns = self._lateral(scope)
        word = self.choices.pick(("cross join", "left join"))
        self.met[f"{word} lateral"] += 1
        on = " on true" if word == "left join" else ""
        return f"{text} {word} lateral {more}{on}", [*scope, *columns]

    def _with_using(
        self, text: str, scope: list[tuple[str, str]]
    ) -> tuple[str, list[tuple[str, str]]]:
        """A join by the name of a column; the merged column has no table's name."""
        table, alias = self.choices.pick(self.tables), self.fresh("t")
        word = self.choices.pick(("join", "left join", "full join", "right join"))
        self.met[f"{word} using"] += 1
        rest = [(f"{alias}.{n}", k) for n, k in table.columns if n != "k"]
        merged = [("k", "int4"), *(each for each in scope if not each[0].endswith(".k"))]
        if self.choices.often(1, 4):
            named = self.fresh("u")
            self.met["using as"] += 1
            return f"{text} {word} {table.name} as {alias} using (k) as {named}", [
                *merged,
                *rest,
                (f"{named}.k", "int4"),
            ]
        return f"{text} {word} {table.name} as {alias} using (k)", [*merged, *rest]

    def _on(self, left: Scope, right: Scope, *, only_equal: bool) -> str:
        pairs = [(a, b) for a, k in left for b, j in right if k == j and k in KEYS]
        if not pairs:
            return "true" if not only_equal else "1 = 1"
        a, b = self.choices.pick(pairs)
        on = f"{a} = {b}"
        if self.choices.often(1, 8):
            a, b = self.choices.pick(pairs)
            on = f"{on} and {a} = {b}"
        if only_equal or self.choices.below(3):
            return on
        if self.choices.often(1, 4):
            self.met["subquery in ON"] += 1
            return f"{on} and {self.condition([*left, *right])}"
        return self.choices.pick(
            (f"{on} and {self.scalars.boolean([*left, *right])}", f"{a} < {b}",
             f"{a} is not distinct from {b}", f"({on} or {a} is null)")
        )  # fmt: skip

    def _lateral(self, scope: Scope) -> tuple[str, Scope]:
        if self.choices.often(1, 2):
            return self._function(scope)
        text, inner = self.source(0)
        where = self.correlated(scope, inner)
        name, kind = self.choices.pick([c for c in inner if c[1] in KEYS] or list(inner))
        alias = self.fresh("l")
        if self.choices.often(1, 3):
            self.met["lateral limit"] += 1
            query = (
                f"(select {name} from {text} where {where} order by 1 desc, {name}::text limit 1)"
            )
            return self._named(query, alias, [kind])
        query = f"(select count(*), count(distinct {name}) from {text} where {where})"
        return self._named(query, alias, ["int8", "int8"])

    def correlated(self, outer: Scope, inner: Scope) -> str:
        """A condition between what is inside and what is outside."""
        pairs = [(a, b) for a, k in inner for b, j in outer if k == j and k in KEYS]
        if not pairs or self.choices.often(1, 5):
            return self.scalars.boolean([*inner, *outer], 1)
        a, b = self.choices.pick(pairs)
        return f"{a} {self.choices.pick(('=', '=', '<', 'is not distinct from', '>='))} {b}"


def _is_table(text: str, scope: Scope) -> bool:
    """Whether a FROM is one table yet, whose column k is known by that name alone."""
    return scope[0][0].endswith(".k") and "(" not in text
