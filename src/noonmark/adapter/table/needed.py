"""What tables keep of others: sequences in defaults, types of columns, keys that they refer to.

It is no object that needs another one, so CASCADE has nothing to drop: as long as a table stays,
what it keeps of others stays with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import KEPT
from noonmark.adapter.catalog.user_types import Made, made_types, named_by, type_of
from noonmark.adapter.sequence.default import used
from noonmark.adapter.table.constraints import referencing
from noonmark.errors import DependentObjects, Unsupported
from noonmark.rows.domain import Domain


def refuse_defaults(
    catalog: Catalog, going: Sequence[Item], what: str, cascade: bool, own: int | None = None
) -> None:
    """A sequence that the default of a column takes from stays, unless its table goes with it.

    Args:
        catalog: where the tables are.
        going: everything that is to go, the sequences of tables and columns with it.
        what: what the statement drops, as an error calls it.
        cascade: whether CASCADE was said.
        own: a table that stays, and whose own defaults are seen to.

    Raises:
        DependentObjects: a default of another table takes from one.
    """
    numbers = {item.number for item in going} | {own}
    lines = [
        f"default value for column {column} of {table} depends on {item}"
        for item in going
        if item.kind == "sequence"
        for table in catalog.items("table")
        for column, text in table.definition.get("defaults", {}).items()
        if table.number not in numbers and item.definition["uid"] in used(text)
    ]
    if not lines:
        return
    if cascade:
        raise Unsupported(
            f"DROP ... CASCADE of {what}, whose sequence a default takes from, is not supported",
            hint="ALTER TABLE ... ALTER COLUMN ... DROP DEFAULT first.",
        )
    raise DependentObjects(
        f"cannot drop {what} because other objects depend on it",
        detail="\n".join(lines).replace('"', ""),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def refuse_columns(catalog: Catalog, targets: list[Item], cascade: bool) -> None:
    """A type that columns have, or that defaults and CHECKs name, stays, unless they go."""
    schemas = {item.name for item in targets if item.kind == "schema"}
    inside = [item for item in catalog.items("type") if item.schema_name in schemas]
    types = [each for each in (*targets, *inside) if each.kind == "type"]
    going = {item.number for item in (*targets, *inside)}
    kept: list[str] = []
    lines: list[str] = []
    for item in reversed(types):
        kind = type_of(item)
        lines += _made_of(catalog, kind, going)
        own = list(_kept_by(catalog, kind, going, schemas))
        kept += own
        lines += own + [
            f"{named(view)} depends on type {kind}"
            for view in catalog.items("view", "materialized-view")
            if item.number in view.needs and view.schema_name not in schemas
        ]
    if kept and cascade:
        raise Unsupported(
            f"DROP ... CASCADE of type {type_of(types[0])} that tables name is not supported",
            detail="\n".join(kept),
            hint="Drop the defaults and constraints that name it, or those tables, first.",
        )
    if lines and not cascade:
        several = len(types) > 1
        what = "desired object(s)" if several else f"type {type_of(types[0])}"
        raise DependentObjects(
            f"cannot drop {what} because other objects depend on {'them' if several else 'it'}",
            detail="\n".join(lines),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )


def _made_of(catalog: Catalog, kind: Made, going: Collection[int]) -> Iterator[str]:
    """The domains that are made of a type, and the columns of those."""
    for item in catalog.items("type"):
        made = type_of(item)
        if not isinstance(made, Domain) or item.number in going:
            continue
        if kind in (made.over, made.base) or (made.over is None and kind in named_by(item)):
            yield f"type {made} depends on type {kind}"
            yield from _made_of(catalog, made, going)
            yield from _kept_by(catalog, made, going, ())


def _kept_by(
    catalog: Catalog, kind: Made, going: Collection[int], schemas: Collection[str]
) -> Iterator[str]:
    """What of relations that stay is of a type, or names it."""
    for other in catalog.items(*KEPT):
        if other.number in going or other.schema_name in schemas:
            continue
        if other.kind == "materialized-view":
            continue  # it needs the type: with CASCADE it goes
        own = [
            f"column {column.name} of {named(other)} depends on type {column.declared}"
            for column in other.schema
            if column.domain == kind or (column.domain is None and kind in made_types(column.type))
        ]
        own.sort(key=lambda line: not line.endswith("[]"))  # arrays first, as in PostgreSQL
        if not own and kind in named_by(other):
            own.append(f"{named(other)} depends on type {kind}")
        yield from own


def refuse_referenced(catalog: Catalog, targets: list[Item]) -> None:
    """A table that foreign keys of others refer to stays."""
    going = {item.number for item in targets}
    schemas = {item.name for item in targets if item.kind == "schema"}
    for item in (each for each in targets if each.kind == "table"):
        lines = [
            f"constraint {foreign.name} on {named(child)} depends on {named(item)}"
            for child, foreign in referencing(catalog, item)
            if child.number not in going and child.schema_name not in schemas
        ]
        if lines:
            raise DependentObjects(
                f"cannot drop {named(item)} because other objects depend on it",
                detail="\n".join(lines),
                hint="Drop the tables together, or ALTER TABLE ... DROP CONSTRAINT first.",
            )


def named(item: Item) -> str:
    """What an error calls an object."""
    return f"{item.kind.replace('-', ' ')} {item.name}"
