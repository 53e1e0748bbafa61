"""The views of the demo: who sells how well, and the whole house in one row, maintained live."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from noonmark.compute.audit import audit_view
from noonmark.compute.dataflow import Dataflow
from noonmark.compute.definition import Definition
from noonmark.compute.session import OpenSession
from noonmark.compute.view import View
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Client
from noonmark.rows.schema import Schema

VIEWS = {
    "sellers": """
        SELECT a.seller, count(*) AS bids, sum(b.amount) AS total
        FROM bids AS b JOIN auctions AS a ON a.id = b.auction_id
        GROUP BY a.seller
    """,
    "house": "SELECT count(*) AS sellers, sum(bids) AS bids, sum(total) AS total FROM sellers",
}
_PAUSE_S = 0.5


@dataclass(frozen=True)
class Audited:
    """A view against its definition at one time."""

    name: str
    as_of: int
    rows: int
    differences: int


class Views:
    """The views, ticking in a thread of their own until stopped."""

    def __init__(self, client: Client, spark: OpenSession) -> None:
        self.client = client
        self.flow = Dataflow()
        self.error: str | None = None
        self._spark = spark
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="views", daemon=True)

    def start(self) -> None:
        """Begin, as soon as the collections that the views read are there."""
        self._thread.start()

    def _create(self) -> None:
        """The views, once their inputs exist."""
        names, inputs = self.client.state.names, ("auctions", "bids")
        if self.flow.views or not all(name in names for name in inputs):
            return
        schemas: dict[str, Schema] = {
            name: self.client.state.collection(name).schema for name in inputs
        }
        for name, sql in VIEWS.items():
            definition = Definition.of_sql(name, sql, schemas)
            schemas[name] = definition.plan.schema
            self.flow.add(View(self.client, self._spark, definition))

    def _run(self) -> None:
        while not self._stopped.is_set() and self.error is None:
            self._round()
            self._stopped.wait(_PAUSE_S)

    def _round(self) -> None:
        try:
            self._create()
            self.flow.tick()
        except NoonmarkError as error:
            self.error = str(error)

    def stop(self) -> None:
        """End the thread, and bring the views up to all that came in."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
            for _ in range(2):  # the first may have to hydrate
                self._round()

    def house(self) -> tuple[Any, ...] | None:
        """The one row of the house, as of the last time at which it is known."""
        view = self.flow.views.get("house")
        if view is None or not view.is_hydrated:
            return None
        upper = view.upper.only()
        if upper is None:
            return None
        rows = self.client.create_or_load("house")[1].snapshot(upper - 1).result().rows()
        row: tuple[Any, ...] | None = rows[0] if rows else None
        return row

    def audit(self) -> list[Audited]:
        """Every view recomputed from its inputs at its last time."""
        made = []
        for name, view in self.flow.views.items():
            upper = view.upper.only()
            if upper is None or not view.is_hydrated:
                continue
            rows = self.client.create_or_load(name)[1].snapshot(upper - 1).result().rows()
            found = audit_view(view, upper - 1)
            made.append(Audited(name, upper - 1, len(rows), len(found)))
        return made
