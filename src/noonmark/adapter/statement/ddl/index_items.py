"""The items of indexes: what each keeps a copy of, over the relation as it is now.

An index of expressions, or of some rows alone, keeps the rows that its condition is true of, with
the values of its expressions as columns behind those of the relation; they are called as the
expressions are written. Its definition has ``elements``, each a column's name and a text, and
``where``.
"""

from __future__ import annotations

from dataclasses import replace

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.names import plan_tree
from noonmark.adapter.table.expressions import columns_in, unqualified
from noonmark.rows.types import quote_name
from noonmark.sql.dialect import parse


def over(catalog: Catalog, index: Item, on: Item) -> Item:
    """The index on a relation: the same one, or one that took its place."""
    has = {
        **index.definition,
        "on": on.number,
        "query": _query(index, on),
        "names": {on.name: [on.number, len(on.schema)]},
    }
    others = tuple(each for each in index.needs if each != index.definition["on"])
    needs = tuple(sorted({on.number, *others}))
    made = replace(index, definition=has, needs=needs, schema=on.schema)
    if "elements" not in has:
        return made
    # What took a relation's place is in no catalog yet.
    before = [index.definition["on"]] if index.definition["on"] != on.number else []
    whole = catalog if catalog.by_number.get(on.number) is on else catalog.changed([on], before)
    planned = plan_tree(whole, parse(has["query"]), pins=has["names"], types=index.types)
    key = tuple(name or _called(on, text) for name, text in has["elements"])
    return replace(made, schema=planned.query.relation.schema, key=key)


def columns_of(index: Item) -> set[str]:
    """The columns of its relation that an index needs."""
    has = index.definition
    if "elements" not in has:
        return set(index.key)
    texts = [text for _, text in has["elements"]]
    return set().union(*map(columns_in, [*texts, *filter(None, [has["where"]])]))


def _query(index: Item, on: Item) -> str:
    elements = index.definition.get("elements", ())
    own = [(unqualified(text), _called(on, text)) for name, text in elements if name is None]
    more = "".join(f", {text} AS {quote_name(name)}" for text, name in own)
    where = index.definition.get("where")
    end = "" if where is None else f" WHERE {unqualified(where)}"
    return f"SELECT *{more} FROM {quote_name(on.name)}{end}"


def _called(on: Item, text: str) -> str:
    """The column that has the values of an expression."""
    name = text
    while name in on.schema:
        name += "_"
    return name
