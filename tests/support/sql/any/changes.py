"""Statements that change a table: INSERT, UPDATE, DELETE and MERGE, most with RETURNING.

Every statement has one outcome: a row is changed by one other row at the most. RETURNING shows the
table that is changed and the tables beside it. What is assigned is now and then of another type
than the column, so that assignment casts, or their lack, are seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from support.sql.any.choices import Choices
from support.sql.any.scalars import Scalars, Scope
from support.sql.any.values import TYPES, Table


class Changes:
    """One statement that changes one of some tables."""

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

    def next(self) -> tuple[str, str]:
        """A statement, and the name of the table that it changes."""
        table = self.choices.pick(self.tables)
        form = self.choices.pick((self._insert, self._update, self._delete, self._merge))
        self.met[f"change {form.__name__.strip('_')}"] += 1
        return form(table), table.name

    def _value(self, kind: str, scope: Scope, depth: int = 1) -> str:
        if self.choices.often(1, 12):
            self.met["default"] += 1
            return "default"
        if self.choices.often(1, 10):
            kind = self.choices.pick(list(TYPES))
            self.met["assigned of another type"] += 1
        return self.scalars.scalar(kind, scope, depth)

    def _scope(self, table: Table, alias: str) -> Scope:
        return [(f"{alias}.{name}", kind) for name, kind in table.columns]

    def _returning(self, scope: Scope) -> str:
        form = self.choices.below(5)
        if form == 0:
            return ""
        if form < 3:
            return f" returning {('x.*', '*')[form - 1]}"
        kind = self.choices.pick(list(TYPES))
        return f" returning x.k, {self.scalars.scalar(kind, scope, 1)} as made"

    def _columns(self, table: Table) -> list[tuple[str, str]]:
        """The key, and some of the others."""
        rest = [each for each in table.written if self.choices.often(2, 3)]
        return [table.columns[0], *rest]

    def _key(self) -> str:
        return str(self.choices.below(9))

    def _insert(self, table: Table) -> str:
        columns = self._columns(table)
        names = ", ".join(name for name, _ in columns)
        if self.choices.often(1, 3):
            self.met["insert select"] += 1
            # Keys of a source that has none would be there twice.
            sources = [each for each in self.tables if each.key or not table.key]
            other = self.choices.pick(sources)
            scope = self._scope(other, "s")
            made = [self.scalars.scalar(kind, scope, 1) for _, kind in columns[1:]]
            key = f"s.k + {self.choices.pick((100, 3))}" if other.key else "200"
            source = f"select {', '.join([key, *made])} from {other.name} as s"
        else:
            keys = [self._key() for _ in range(1 + self.choices.below(2))]
            if self.choices.often(1, 4):
                self.met["insert many"] += 1
                keys = [str(int(keys[0]) + at) for at in range(9)]
            rows = [[key, *(self._value(kind, []) for _, kind in columns[1:])] for key in keys]
            source = "values " + ", ".join(f"({', '.join(row)})" for row in rows)
        conflict = self._conflict(table) if table.key else ""
        scope = self._scope(table, "x")
        return f"insert into {table.name} as x ({names}) {source}{conflict}{self._returning(scope)}"

    def _conflict(self, table: Table) -> str:
        form = self.choices.below(4)
        if form == 0:
            return ""
        self.met[f"on conflict {form}"] += 1
        if form == 1:
            return " on conflict do nothing"
        scope = [*self._scope(table, "x"), *self._scope(table, "excluded")]
        where = f" where {self.scalars.boolean(scope, 0)}" if form == 3 else ""
        return f" on conflict (k) do update set {self._sets(table, scope)}{where}"

    def _sets(self, table: Table, scope: Scope) -> str:
        from_ = table.columns[1:] if self.choices.often(1, 12) else table.written
        chosen = [each for each in from_ if self.choices.often(1, 3)] or [table.written[0]]
        return ", ".join(f"{name} = {self._value(kind, scope)}" for name, kind in chosen)

    def _beside(self, table: Table, word: str) -> tuple[str, str, Scope]:
        """Another table, by its key: one row of it for a row at the most."""
        keyed = [each for each in self.tables if each.key and each is not table]
        if not keyed or not self.choices.often(1, 3):
            return "", "true", []
        other = self.choices.pick(keyed)
        self.met[f"{word} beside"] += 1
        return f" {word} {other.name} as s", "s.k = x.k", self._scope(other, "s")

    def _update(self, table: Table) -> str:
        beside, on, more = self._beside(table, "from")
        scope = [*self._scope(table, "x"), *more]
        where = f"{on} and {self.scalars.boolean(scope, 1)}"
        sets = self._sets(table, scope)
        head = f"update {table.name} as x set {sets}{beside}"
        return f"{head} where {where}{self._returning(scope)}"

    def _delete(self, table: Table) -> str:
        beside, on, more = self._beside(table, "using")
        scope = [*self._scope(table, "x"), *more]
        where = f"{on} and {self.scalars.boolean(scope, 1)}"
        return f"delete from {table.name} as x{beside} where {where}{self._returning(scope)}"

    def _merge(self, table: Table) -> str:
        other = self.choices.pick([each for each in self.tables if each.key])
        target, source = self._scope(table, "x"), self._scope(other, "s")
        both, parts = [*target, *source], []
        if self.choices.often(1, 2):
            parts.append(f"when matched and {self.scalars.boolean(both, 0)} then delete")
        parts.append(f"when matched then update set {self._sets(table, both)}")
        columns = self._columns(table)
        values = ["s.k + 500", *(self._value(kind, source) for _, kind in columns[1:])]
        names = ", ".join(name for name, _ in columns)
        parts.append(f"when not matched then insert ({names}) values ({', '.join(values)})")
        if self.choices.often(1, 3):
            parts.append(
                f"when not matched by source and {self.scalars.boolean(target, 0)} then delete"
            )
        on = f"merge into {table.name} as x using {other.name} as s on x.k = s.k"
        shown = self._returning(both)
        if shown and self.choices.often(1, 2):
            self.met["merge_action"] += 1
            shown += ", merge_action()"
        return f"{on} {' '.join(parts)}{shown}"
