"""WITH that writes: a statement that changes a table, and another one that reads what it returned.

What is compared is the answer and the table that the first part changes.
"""

from __future__ import annotations

from support.sql.any.changes import Changes
from support.sql.any.values import Table


class Withs(Changes):
    """One WITH of a part that writes, over some tables."""

    def next(self) -> tuple[str, str]:
        """A statement, and the name of the table that its part changes."""
        choices, table = self.choices, self.choices.pick(self.tables)
        part = self._part(table)
        other = choices.pick([each for each in self.tables if each is not table])
        main = choices.pick(
            (
                "select * from w",
                "select count(*), count(distinct k) from w",
                f"select w.k, x.k from w left join {table.name} as x on x.k = w.k",
                f"select (select count(*) from {table.name}), (select count(*) from w)",
                f"select k from w union all select k from {table.name}",
                f"select count(*) from {table.name}",
                f"select x.k, n from (select k, count(*) as n from w group by k) as x"
                f" where exists (select 1 from {other.name} as y where y.k >= x.k)",
                f"delete from {other.name} as y using w where y.k = w.k returning y.k, w.k",
                f"insert into {other.name} (k) select 900 + k from w where k between 0 and 90"
                " returning k",
                f"update {other.name} as y set k = y.k from w where y.k = w.k returning y.k",
            )
        )
        self.met[f"with that writes, {main.split()[0]}"] += 1
        if choices.often(1, 3):
            more = "v as (select k + 1 as k from w where k is not null)"
            main = main.replace("from w", "from v") if " w." not in main else main
            return f"with w as ({part}), {more} {main}", table.name
        return f"with w as ({part}) {main}", table.name

    def _part(self, table: Table) -> str:
        form = self.choices.pick((self._insert, self._update, self._delete))
        text = form(table)
        head, _, _ = text.partition(" returning ")
        return f"{head} returning x.k as k"
