"""The look-ups that a session has ready: statements that are look-ups by key, by identity.

Law (catalog): what is ready was planned against the catalog of now, under the search path and the
role of now: a change of one of these ends it, as it ends the plans that a session keeps.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from noonmark.adapter.contract import Answer
from noonmark.adapter.peek.lookup import Lookup
from noonmark.adapter.session.memory import Account, Cache, text_bytes

if TYPE_CHECKING:
    from noonmark.adapter.catalog import Catalog
    from noonmark.adapter.contract import Field
    from noonmark.adapter.peek.planning import PlannedQuery
    from noonmark.adapter.peek.reads import Reads

#: How many of its statements a session has ready, or knows to be no look-ups.
READY_MAX = 256


class _Ready(NamedTuple):
    statement: object  # kept, so that nothing else has its identity
    catalog: Catalog
    fields: tuple[Field, ...]
    lookup: Lookup | None


class Ready:
    """See the module."""

    def __init__(self, account: Account) -> None:
        self._known: Cache[int, _Ready] = Cache("look-ups", 4 << 20, READY_MAX, account)

    def clear(self) -> None:
        """Forget all: names or rights are others now."""
        self._known.clear()

    def answer(
        self, statement: object, catalog: Catalog, values: Sequence[object]
    ) -> Answer | None:
        """The answer of a statement that is ready; None where it is not, or has to wait."""
        known = self._known.get(id(statement))
        if known is None or known.lookup is None or known.catalog is not catalog:
            return None
        rows = known.lookup.rows(values)
        return None if rows is None else Answer(known.fields, rows)

    def keep(self, statement: object, text: str, plan: PlannedQuery, reads: Reads) -> None:
        """Have a statement ready that was answered by this plan, if it is a look-up."""
        known = self._known.get(id(statement))
        if not plan.settled or (known is not None and known.catalog is plan.catalog):
            return
        lookup = Lookup.of(reads, plan.peek)
        ready = _Ready(statement, plan.catalog, plan.fields, lookup)
        self._known.keep(id(statement), ready, text_bytes(text))
