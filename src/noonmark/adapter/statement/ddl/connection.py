"""CREATE CONNECTION, CREATE SECRET, CREATE SINK and VALIDATE CONNECTION.

A connection is kept as it was written, its secrets by reference; a secret is kept sealed
(`upstream.secret`), and its statement is not kept at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.aside import cancellable
from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.contract import Done, Outcome
from noonmark.adapter.peek.planning import value_of
from noonmark.adapter.statement.ddl.common import (
    Created,
    create,
    is_free,
    place,
    require_place,
)
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.upstream.connection import (
    check_connection,
    kafka_options,
    postgres_url,
    registry_of,
)
from noonmark.adapter.upstream.secret import seal, secret_of
from noonmark.adapter.upstream.sink import sink_definition, sink_item
from noonmark.errors import (
    ConfigError,
    EvaluationError,
    InvalidValue,
    RefusedHere,
    SourceStalled,
    SqlError,
    UndefinedObject,
)
from noonmark.peer import ask
from noonmark.source.impl import kafka, postgres
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_create_connection(
    session: AdapterSession, statement: st.CreateConnection, _: Sequence[Any]
) -> Outcome:
    """CREATE CONNECTION: kept, and looked at when something uses it or WITH (VALIDATE) asks."""
    superuser = is_superuser(session.catalog, session.user)
    check_connection(statement.kind, statement.options, names_files=superuser)

    if statement.validate and is_free(session, "CREATE CONNECTION", statement.name):
        # Outside of the catalog's turn: who is asked may not answer.
        catalog = session.catalog
        item = _connection(session, catalog, catalog.next_number, statement)
        await cancellable(validate(catalog, item))

    async def make(catalog: Catalog, number: int) -> Created:
        return Created((_connection(session, catalog, number, statement),), lambda _: ())

    done, _created = await create(
        session, "CREATE CONNECTION", statement.name, statement.if_not_exists, make
    )
    return done


def _connection(
    session: AdapterSession, catalog: Catalog, number: int, statement: st.CreateConnection
) -> Item:
    schema_name, name = place(catalog, statement.name)
    options, needs = connection_options(
        session.access("CREATE CONNECTION", catalog), statement.options
    )
    by_role = not is_superuser(catalog, session.user)
    definition = {
        "kind": statement.kind, "options": options, "text": session.text, "by_role": by_role,
    }  # fmt: skip
    return Item(
        number, "connection", schema_name, name, definition=definition, needs=tuple(needs),
        owner=session.user,
    )  # fmt: skip


def connection_options(access: Access, given: st.Options) -> tuple[dict[str, Any], list[int]]:
    """Options as a connection keeps them, and the numbers of the secrets among them."""
    needs: list[int] = []
    options: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, st.SecretRef):
            secret = secret_of(access, value.name)
            needs.append(secret.number)
            options[key] = {"secret": secret.number}
        else:
            options[key] = str(value) if isinstance(value, st.Name) else value
    return options, needs


def secret_value(session: AdapterSession, value: st.ScalarText, values: Sequence[Any]) -> str:
    """The text of a secret; no error says anything of it.

    Raises:
        InvalidValue: the expression has no value, or not a text.
    """
    found: Any = None
    try:
        found = value_of(session, value.tree, values)
        found = found.decode() if isinstance(found, bytes) else found
    except (EvaluationError, SqlError, UnicodeDecodeError) as error:
        sqlstate = getattr(error, "sqlstate", InvalidValue.sqlstate)
        raise InvalidValue(
            "the value of the secret cannot be computed",
            detail=f"SQLSTATE {sqlstate}. What went wrong is not repeated here: it may show it.",
            position=value.position,
        ) from None
    if not isinstance(found, str):
        raise InvalidValue("a secret is a text", position=value.position)
    return found


async def run_create_secret(
    session: AdapterSession, statement: st.CreateSecret, values: Sequence[Any]
) -> Outcome:
    """CREATE SECRET."""

    async def make(catalog: Catalog, number: int) -> Created:
        schema_name, name = place(catalog, statement.name)
        sealed = await asyncio.to_thread(seal, secret_value(session, statement.value, values))
        item = Item(
            number, "secret", schema_name, name, definition={"sealed": sealed}, owner=session.user
        )
        return Created((item,), lambda _: ())

    done, _created = await create(
        session, "CREATE SECRET", statement.name, statement.if_not_exists, make
    )
    return done


async def run_validate_connection(
    session: AdapterSession, statement: st.ValidateConnection, _: Sequence[Any]
) -> Outcome:
    """VALIDATE CONNECTION."""
    access = session.access("VALIDATE CONNECTION")
    item = access.find(statement.name.parts)
    if item is None or item.kind != "connection":
        raise UndefinedObject(
            f'connection "{statement.name}" does not exist', position=statement.name.position
        )
    access.check("connection", item)
    await cancellable(validate(session.catalog, item))
    return Done("VALIDATE CONNECTION")


async def validate(catalog: Catalog, item: Item) -> None:
    """Whether a connection connects."""
    kind = item.definition["kind"]
    if kind == "postgres":
        await postgres.validate(postgres_url(catalog, item))
    elif kind == "kafka":
        await kafka.validate(kafka_options(catalog, item))
    else:
        try:
            await ask("statement", "on a registry", registry_of(catalog, item).validate)
        except RefusedHere:
            raise
        except SourceStalled as error:
            raise ConfigError(error.message) from error


async def run_create_sink(
    session: AdapterSession, statement: st.CreateSink, _: Sequence[Any]
) -> Outcome:
    """CREATE SINK."""
    require_place(session, "CREATE SINK", statement.name)
    definition = await cancellable(sink_definition(session, statement))

    async def make(catalog: Catalog, number: int) -> Created:
        item = sink_item(session, catalog, number, statement, definition)
        return Created((item,), lambda _: ())

    done, created = await create(
        session, "CREATE SINK", statement.name, statement.if_not_exists, make
    )
    if created is not None:
        await session.database.work.add_sink(created.items[0])
    return done


HANDLERS: Handlers = {
    st.CreateConnection: run_create_connection,
    st.CreateSecret: run_create_secret,
    st.CreateSink: run_create_sink,
    st.ValidateConnection: run_validate_connection,
}
