"""CREATE CONNECTION, CREATE SECRET, CREATE SINK and VALIDATE CONNECTION.

A connection is kept as it was written, its secrets by reference. A secret is refused: what is
stored here could be read by whoever can read the location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.contract import Outcome
from noonmark.adapter.run.ddl_common import Created, create, place
from noonmark.adapter.run.handler import Handlers
from noonmark.errors import UndefinedObject, Unsupported
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession


async def run_create_connection(
    session: AdapterSession, statement: st.CreateConnection, _: Sequence[Any]
) -> Outcome:
    """CREATE CONNECTION: kept, and looked at when something uses it."""

    async def make(catalog: Catalog, number: int) -> Created:
        schema_name, name = place(catalog, statement.name)
        needs: list[int] = []
        options: dict[str, Any] = {}
        for key, value in statement.options.items():
            if isinstance(value, st.SecretRef):
                secret = catalog.find(value.name.parts)
                if secret is None or secret.kind != "secret":
                    raise UndefinedObject(
                        f'secret "{value.name}" does not exist', position=value.name.position
                    )
                needs.append(secret.number)
                options[key] = {"secret": secret.number}
            else:
                options[key] = str(value) if isinstance(value, st.Name) else value
        definition = {"kind": statement.kind, "options": options, "text": session.text}
        item = Item(
            number, "connection", schema_name, name, definition=definition, needs=tuple(needs),
            owner=session.user,
        )  # fmt: skip
        return Created((item,), lambda _: ())

    if statement.validate:
        raise _unsupported_validation(statement.kind)
    done, _created = await create(
        session, "CREATE CONNECTION", statement.name, statement.if_not_exists, make
    )
    return done


async def run_create_secret(
    _: AdapterSession, statement: st.CreateSecret, __: Sequence[Any]
) -> Outcome:
    """CREATE SECRET is refused: see the module."""
    raise Unsupported(
        "CREATE SECRET is not supported",
        detail="Secrets would be readable to whoever can read the storage location.",
        position=statement.name.position,
    )


async def run_validate_connection(
    session: AdapterSession, statement: st.ValidateConnection, _: Sequence[Any]
) -> Outcome:
    """VALIDATE CONNECTION."""
    item = session.catalog.find(statement.name.parts)
    if item is None or item.kind != "connection":
        raise UndefinedObject(
            f'connection "{statement.name}" does not exist', position=statement.name.position
        )
    raise _unsupported_validation(item.definition["kind"])


def _unsupported_validation(kind: str) -> Unsupported:
    return Unsupported(f"VALIDATE CONNECTION to {kind.upper()} is not supported")


async def run_create_sink(
    _: AdapterSession, statement: st.CreateSink, __: Sequence[Any]
) -> Outcome:
    """CREATE SINK is refused by name."""
    raise Unsupported("CREATE SINK is not supported", position=statement.name.position)


HANDLERS: Handlers = {
    st.CreateConnection: run_create_connection,
    st.CreateSecret: run_create_secret,
    st.CreateSink: run_create_sink,
    st.ValidateConnection: run_validate_connection,
}
