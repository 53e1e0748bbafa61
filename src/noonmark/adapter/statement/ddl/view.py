"""CREATE VIEW and CREATE MATERIALIZED VIEW, with OR REPLACE.

A view is its text and what its names meant when it was made; a materialized view is that, and
collections that Compute maintains, which come to life in the commit that names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from noonmark.adapter.aside import spark_modules
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.catalog import name_taken
from noonmark.adapter.catalog.item import Kind
from noonmark.adapter.catalog.user_types import uids_in
from noonmark.adapter.contract import Outcome
from noonmark.adapter.names import Planned, plan_tree, with_columns
from noonmark.adapter.planner import PLANNER
from noonmark.adapter.schedule.definitions import view_definition
from noonmark.adapter.session.commit import staged_client
from noonmark.adapter.session.temporary import placed
from noonmark.adapter.statement.ddl.common import Created, create, place, retain_ms
from noonmark.adapter.statement.ddl.drop import dependents_refused, removal_of
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.weight import weight_of
from noonmark.compute.plan.maintenance import decisions
from noonmark.compute.plan.operators import Way
from noonmark.errors import Unsupported, WrongObjectType
from noonmark.persist.log import command as c
from noonmark.persist.pending import with_pending
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import Now, asked
from noonmark.sql.ir.call import TableCall
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.relation import Relation
from noonmark.sql.rules import simplify
from noonmark.sql.rules.temporal import separated
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession
    from noonmark.compute.view.view import View
    from noonmark.persist.client import Client

    AnyView = st.CreateView | st.CreateMaterializedView


_USES: dict[Kind, str] = {
    "view": "CREATE VIEW",
    "materialized-view": "CREATE MATERIALIZED VIEW",
}


def planned_view(
    session: AdapterSession, catalog: Catalog, query: st.QueryText, use: str
) -> Planned:
    """The query of a view, of relations that the user may name, or read."""
    with_ = query.tree.args.get("with_")
    if with_ is not None and any(isinstance(each.this, exp.DML) for each in with_.expressions):
        verb = (
            "views must not contain" if use == _USES["view"] else "materialized views must not use"
        )
        raise Unsupported(f"{verb} data-modifying statements in WITH")
    return plan_tree(catalog, query.tree, access=session.access(use, catalog))


def view_item(
    session: AdapterSession,
    catalog: Catalog,
    number: int,
    statement: AnyView,
    kind: Kind,
) -> Item:
    """The item that a statement describes."""
    planned = planned_view(session, catalog, statement.query, _USES[kind])
    if kind == "materialized-view":
        separated(simplify(planned.query.relation))  # refuses mz_now() where it has no turn
    schema_name, name = place(catalog, statement.name)
    query = with_columns(planned.query, statement.columns)
    definition: dict[str, Any] = {
        "text": session.text,
        "query": statement.query.text,
        "names": {written: list(pin) for written, pin in planned.pins.items()},
        "columns": list(statement.columns),
    }
    if planned.types:
        definition["types"] = dict(planned.types)
    if Now in asked(planned.query.relation):
        definition["follows_time"] = True
    # A domain that is only cast to is no type of any value, but its text is in the view's.
    uids = uids_in(planned.query.relation) | set(planned.types.values())
    types = {catalog.types[uid].number for uid in uids}
    options = getattr(statement, "options", {})
    if "maintenance" in options:
        definition["maintenance"] = options["maintenance"]
    return Item(
        number,
        kind,
        schema_name,
        name,
        query.relation.schema,
        definition=definition,
        needs=tuple(sorted({*(item.number for item in planned.items), *types})),
        types={written: catalog.types[uid] for written, uid in planned.types.items()},
        owner=session.user,
        retain_ms=retain_ms(options),
    )


def replaced(session: AdapterSession, catalog: Catalog, statement: AnyView, kind: Kind) -> int:
    """The number of the view that OR REPLACE takes the place of; 0 for none.

    Raises:
        DependentObjects: others read it: a view's columns and times are theirs, too.
    """
    found = catalog.by_name.get(place(catalog, statement.name))
    if found is None:
        return 0
    if not statement.or_replace:
        raise name_taken(found)
    if found.kind != kind:
        raise WrongObjectType(f'"{found.name}" is not a {kind.replace("-", " ")}')
    session.access(_USES[kind], catalog).check("replaced", found)
    dependents_refused(catalog, [found], "replace")
    return found.number


async def run_create_view(
    session: AdapterSession, statement: st.CreateView, _: Sequence[Any]
) -> Outcome:
    """CREATE VIEW: a name for a query."""
    statement = await placed(session, statement)

    async def make(catalog: Catalog, number: int) -> Created:
        old = replaced(session, catalog, statement, "view")
        weight = weight_of(catalog, statement.query.text)
        item = await PLANNER.run(weight, view_item, session, catalog, number, statement, "view")
        return Created((item,), lambda _: (), (old,) if old else ())

    done, _created = await create(
        session, "CREATE VIEW", statement.name, statement.if_not_exists, make
    )
    return done


async def run_create_materialized_view(
    session: AdapterSession, statement: st.CreateMaterializedView, _: Sequence[Any]
) -> Outcome:
    """CREATE MATERIALIZED VIEW: a query whose answer is kept, and kept current."""
    database = session.database

    async def make(catalog: Catalog, number: int) -> Created:
        await spark_modules()
        # door: Spark's modules: a server starts without them
        from noonmark.compute.view.view import View

        old = replaced(session, catalog, statement, "materialized-view")
        weight = weight_of(catalog, statement.query.text)
        item = await PLANNER.run(
            weight, view_item, session, catalog, number, statement, "materialized-view"
        )
        client = await staged_client(session)
        view = await PLANNER.run(weight, maintained, session, catalog, item, client)
        definition = view.definition
        before: tuple[c.AnyCommand, ...] = ()
        if old and session.store is database.store:
            doomed = [*catalog.dependents([old]), catalog.by_number[old]]  # indexes on it
            before = await removal_of(database, doomed)
            await database.work.remove([each.number for each in doomed])

        def beside(_: int) -> Iterable[c.AnyCommand]:
            after = with_pending(client, before)
            made = View(after, database.started_spark, definition)
            return (*before, *made.creation())

        return Created((item,), beside, (old,) if old else ())

    done, created = await create(
        session, "CREATE MATERIALIZED VIEW", statement.name, statement.if_not_exists, make
    )
    if created is not None and session.store is database.store:
        await database.work.add_view(created.items[0])
    return done


def maintained(session: AdapterSession, catalog: Catalog, item: Item, client: Client) -> View:
    """The view that keeps an item's rows: a materialized view's or an index's, not yet created.

    Raises:
        Unsupported: it cannot be maintained, or not as it was asked for; says why.
    """
    # door: Spark's modules: a server starts without them
    from noonmark.compute.view.view import View

    refuse_unmaintained(catalog, item)
    definition = view_definition(catalog, item)
    if asked(definition.relation) - {Now}:
        raise Unsupported(
            "the session's own functions cannot be maintained",
            hint="Ask for them in the SELECT that reads the view.",
        )
    view = View(client, session.database.started_spark, definition)
    check_maintained(view, strict=item.definition.get("maintenance") == "strict")
    return view


def check_maintained(view: View, *, strict: bool) -> None:
    """Refuse what no rule maintains; if `strict`, also what a change may cost all of its state."""
    # door: Spark's modules: a server starts without them
    from noonmark.compute.view.explain import described, path_text

    refuse_unbounded(view.definition.relation)
    found = list(decisions(view.definition.plan, view.keys))
    unknown = [each for each in found if each.way is Way.UNKNOWN]
    if unknown:
        raise Unsupported(
            f'view "{view.name}" cannot be maintained',
            detail="\n".join(map(described, unknown)),
            hint="CREATE VIEW computes it when it is asked for.",
        )
    whole = [each for each in found if each.costs_all]
    if strict and whole:
        paths = [path_text(path) for each in whole for path in each.paths if path.reads_all]
        raise Unsupported(
            f'view "{view.name}" cannot be maintained by its changes alone',
            detail="\n".join([*paths, *(described(each) for each in whole if not each.paths)]),
            hint="Change the query, or say MAINTENANCE = AUTO.",
        )


def refuse_unbounded(relation: Relation) -> None:
    """Refuse what may take for ever on one row: others would wait for it."""
    for node in walk_once(relation):
        if isinstance(node, s.Call | TableCall) and not node.is_bounded:
            raise Unsupported(
                "a regular expression with back references cannot be maintained",
                detail="The time that it takes on a row is not bounded.",
                hint="Ask for it in the SELECT that reads the view.",
            )


def refuse_unmaintained(catalog: Catalog, item: Item) -> None:
    """Refuse a view over system relations: they have no history."""
    for each in catalog.needs([item.number, *item.needs]):
        if each.is_virtual:
            raise Unsupported(
                f'a materialized view cannot read "{each.full_name}"',
                detail="System relations are computed when they are asked for.",
                hint="Use CREATE VIEW.",
            )


HANDLERS: Handlers = {
    st.CreateView: run_create_view,
    st.CreateMaterializedView: run_create_materialized_view,
}
