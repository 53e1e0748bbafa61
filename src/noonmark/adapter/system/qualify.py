"""The text of a view's query with the schemas of what it reads, where names alone do not find it.

A definition is kept as it was written. Whoever reads it under another search path (pg_dump empties
it) must find the same relations: so a name that means something else to the session, or nothing, is
given its schema.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from noonmark.adapter.catalog.item import Item
from noonmark.rows.types import quote_name
from noonmark.sql import dialect


def qualified(text: str, reads: list[Item], find: Callable[[tuple[str, ...]], Item | None]) -> str:
    """The query of a view that reads these items; `find` is how the session finds a name."""
    tree = dialect.parse(text)
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    by_name = {item.name: item for item in reads}
    places = []
    for table in tree.find_all(exp.Table):
        name = table.this
        if not isinstance(name, exp.Identifier) or table.args.get("db") is not None:
            continue
        item = by_name.get(name.name)
        position = dialect.position_of(name)
        if item is None or name.name in own or position is None or find((item.name,)) == item:
            continue
        places.append((position - 1, item.schema_name))
    for at, schema in sorted(places, reverse=True):
        text = f"{text[:at]}{quote_name(schema)}.{text[at:]}"
    return text
