"""What tables keep of others: sequences in defaults, types of columns, keys that they refer to.

It is no object that needs another one, so CASCADE has nothing to drop: as long as a table stays,
what it keeps of others stays with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.rights import KEPT
from noonmark.adapter.catalog.user_types import made_types, named_by, type_of
from noonmark.adapter.sequence.default import used
from noonmark.adapter.table.constraints import referencing
from noonmark.errors import DependentObjects, Unsupported


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
    going = {item.number for item in targets}
    schemas = {item.name for item in targets if item.kind == "schema"}
    inside = [item for item in catalog.items("type") if item.schema_name in schemas]
    for item in (each for each in (*targets, *inside) if each.kind == "type"):
        kind, lines = type_of(item), []
        for other in catalog.items(*KEPT):
            if other.number in going or other.schema_name in schemas:
                continue
            if other.kind == "materialized-view":
                continue  # it needs the type: with CASCADE it goes
            lines += [
                f"column {column.name} of {named(other)} depends on type {column.type}"
                for column in other.schema
                if kind in made_types(column.type)
            ]
            if not lines and kind in named_by(other):
                lines.append(f"{named(other)} depends on type {kind}")
        lines.sort(key=lambda line: not line.endswith("[]"))  # arrays first, as in PostgreSQL
        views = [
            f"{named(view)} depends on type {kind}"
            for view in catalog.items("view", "materialized-view")
            if item.number in view.needs and view.schema_name not in schemas
        ]
        if lines and cascade:
            raise Unsupported(
                f"DROP ... CASCADE of type {kind} that columns have is not supported",
                detail="\n".join([*lines, *views]),
                hint="ALTER TABLE ... DROP COLUMN, or ALTER COLUMN ... TYPE, first.",
            )
        if not cascade and (lines or views):
            raise DependentObjects(
                f"cannot drop type {kind} because other objects depend on it",
                detail="\n".join([*lines, *views]),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )


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
