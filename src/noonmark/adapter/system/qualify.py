"""The text of a view's query with the names that its relations have now.

A definition is kept as it was written, with what its names meant then. Relations may have been
renamed, or exchanged their names, since; and whoever reads the text under another search path
(pg_dump empties it) must find the same relations. So a name that means something else now is
replaced, and goes on being what its columns are called by; one that the session finds differently
is given its schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.item import PUBLIC, Item
from noonmark.adapter.catalog.type_names import edited, type_edits
from noonmark.rows.types import quote_name
from noonmark.sql import dialect
from noonmark.sql.plan.row import name_of

Find = Callable[[tuple[str, ...]], "Item | None"]


def query_now(catalog: Catalog, view: Item, find: Find | None = None) -> str:
    """The query of a view; `find` is how the session finds a name, where schemas may be missing."""
    text = str(view.definition.get("query", ""))
    means = {
        written: catalog.by_number[number]
        for written, (number, _) in view.definition.get("names", {}).items()
        if number in catalog.by_number
    }
    same = all(
        written in (item.name, f"{item.schema_name}.{item.name}") for written, item in means.items()
    )
    if find is None and same and not view.types:
        return text
    tree = dialect.parse(text)
    edits = list(type_edits(catalog, view, text, tree, lambda item: _is_near(item, find)))
    for table, names in _tables(tree, frozenset()):
        item = means.get(".".join(names))
        if item is not None:
            edits += _edit(table, names, item, find)
    return edited(text, edits)


def _is_near(item: Item, find: Find | None) -> bool:
    """Whether a type is found without its schema."""
    if find is None:
        return item.schema_name == PUBLIC
    return find((item.name,)) == item


def _tables(tree: exp.Expr, own: frozenset[str]) -> Iterator[tuple[exp.Table, list[str]]]:
    """The relations that a query names, without those that it defines itself (`own`)."""
    if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
        parts = [table for table in (tree.args.get("db"), tree.this) if table is not None]
        names = [name_of(each) for each in parts]
        if len(names) > 1 or names[0] not in own:
            yield tree, names
    defined = tree.args.get("with_")
    if defined is not None:
        every = own | {cte.alias for cte in defined.expressions}
        for cte in defined.expressions:
            yield from _tables(cte.this, every if defined.recursive else own)
            own |= {cte.alias}
    for child in tree.iter_expressions():
        if child is not defined:
            yield from _tables(child, own)


def _edit(
    table: exp.Table, names: list[str], item: Item, find: Find | None
) -> list[tuple[int, int, str]]:
    """What stands where, if a name has to be written anew."""
    renamed = names != [item.schema_name, item.name][-len(names) :]
    needs_schema = len(names) == 1 and find is not None and find((item.name,)) != item
    first = dialect.position_of(table.args.get("db") or table.this)
    if first is None or not (renamed or needs_schema):
        return []
    schema = f"{quote_name(item.schema_name)}." if needs_schema or len(names) > 1 else ""
    # The columns of a table without an alias are called by the name that it was written with.
    alias = f" AS {quote_name(names[-1])}" if renamed and not table.alias else ""
    return [(first - 1, table.this.meta["end"] + 1, f"{schema}{quote_name(item.name)}{alias}")]
