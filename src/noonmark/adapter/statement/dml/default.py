"""The value that a column has when nobody gives it one, for rows that are made one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Item
from noonmark.adapter.statement.dml.target import default_of
from noonmark.adapter.worker.values import little_value
from noonmark.sql.assign import loose
from noonmark.sql.coerce import coerce
from noonmark.sql.ir.asked import bind
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Scope

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


def default_value(session: AdapterSession, item: Item, at: int) -> Any:
    """The default of the column at a place."""
    column = item.schema.columns[at]
    row = Frame(Statement({}, session=session.functions)).row("DEFAULT expressions", Scope())
    return little_value(bind(coerce(plan(default_of(item, column), row), loose(column.type)), ()))
