"""Collections of sources that are in a definite error now: for statuses, logs and figures.

What such an error is, and that every read gives it, is said in `noonmark.persist.log.definite`.

Where it runs: wherever it is asked; pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.catalog import Catalog, Item
from noonmark.ingest.ends import Remedy, create_again
from noonmark.persist.log.definite import Failure
from noonmark.persist.log.state import State
from noonmark.rows.types import quote_name

#: The status of a source that cannot be followed any more, or only in part.
ERRORED = "errored"


def error_now(state: State, collection: str) -> Failure | None:
    """Why a collection has no rows from now on; None when it has."""
    number = state.names.get(collection)
    errors = () if number is None else state.collections[number].errors
    return errors[-1].error if errors else None


def errors_now(state: State, items: Iterable[Item]) -> dict[str, Failure]:
    """The errors of items that have one, by their names."""
    found = {item.name: error_now(state, item.collection) for item in items if item.is_stored}
    return {name: error for name, error in found.items() if error is not None}


def outputs_of(catalog: Catalog, source: Item) -> list[Item]:
    """The relations that have the rows of a source: itself, or its subsources."""
    parts = [part for part in catalog.parts_of(source.number) if part.kind == "subsource"]
    return parts or [source]


def said(errors: dict[str, Failure]) -> str | None:
    """All of them in one text; what ends them all is said once."""
    by_message: dict[str, list[str]] = {}
    for name, error in errors.items():
        by_message.setdefault(error.message, []).append(name)
    told = [f"{', '.join(names)}: {message}" for message, names in by_message.items()]
    return "; ".join(told) or None


def status_of_table(state: str, error: Failure | None) -> str:
    """The status of one table of a source that is in a state; another table's error is not its."""
    return ERRORED if error is not None else state.replace(ERRORED, "running")


def remedy_of(catalog: Catalog, source: Item) -> Remedy:
    """What a reader of the source's relations is told to do about an error."""
    upstream = source.definition.get("upstream")
    if upstream not in ("postgres", "kafka"):
        return create_again
    name = quote_name(source.name)

    def remedy(collection: str, is_whole: bool) -> str:
        if is_whole or upstream == "kafka":  # a topic is one table
            return f"When upstream is in order, run: ALTER SOURCE {name} REFRESH;"
        item = catalog.of_collection(collection)
        table = quote_name(collection if item is None else item.name)
        return f"When it is in order upstream, run: ALTER SOURCE {name} REFRESH TABLE {table};"

    return remedy
