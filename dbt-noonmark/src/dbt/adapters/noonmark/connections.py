"""Connections: those of dbt-postgres, with statements that stand alone, and with turns.

Law (alone): what Noonmark takes in no transaction (sources, sinks, `ALTER ... SET`) is sent by
itself; what was open before it is committed first.
Law (turn): of the threads of one dbt, one at a time changes objects that others stand on. A turn
ends with the transaction, or with the connection's work for a node, whatever became of it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any

import psycopg2
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.postgres import PostgresConnectionManager, PostgresCredentials
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.helper_types import Port
from mashumaro.jsonschema.annotations import Maximum, Minimum

_LOG = AdapterLogger("Noonmark")
_SAVEPOINT = "dbt_kept"


@dataclass
class NoonmarkCredentials(PostgresCredentials):
    """A profile: as for PostgreSQL; what is left out is what `noonmark serve` starts with."""

    host: str = "127.0.0.1"
    user: str = "noonmark"
    port: Annotated[Port, Minimum(0), Maximum(65535)] = 6875
    password: str = ""

    def __post_init__(self) -> None:
        """Refuse what would take the transactions away.

        Raises:
            DbtRuntimeError: the profile says `autocommit: true`.
        """
        if self.autocommit:
            raise DbtRuntimeError(
                "A profile of type noonmark cannot have `autocommit: true`: an object is replaced, "
                "with what stands on it, in one transaction."
            )

    @property
    def type(self) -> str:
        """What a profile calls it."""
        return "noonmark"


class NoonmarkConnectionManager(PostgresConnectionManager):
    """The connections of one dbt."""

    TYPE = "noonmark"

    def __init__(self, profile: Any, mp_context: Any) -> None:
        super().__init__(profile, mp_context)
        self._turn = threading.Lock()
        self._has_turn = threading.local()

    def run_alone(self, sql: str) -> AdapterResponse:
        """Run a statement outside of any transaction, after what is open was committed."""
        self.end_transaction()
        handle = self.get_thread_connection().handle
        handle.autocommit = True
        try:
            _, cursor = self.add_query(sql, auto_begin=False)
            return self.get_response(cursor)
        finally:
            if not handle.closed:
                handle.autocommit = False

    def end_transaction(self) -> None:
        """Commit what this thread has open, also what the driver began by itself."""
        connection = self.get_thread_connection()
        connection.handle.commit()
        connection.transaction_open = False

    def take_turn(self) -> None:
        """Wait for the turn; what is read after that is what the last turn left."""
        if not getattr(self._has_turn, "yes", False):
            self._turn.acquire()
            self._has_turn.yes = True
        self.end_transaction()

    def give_turn(self) -> None:
        """End this thread's turn, if it has it."""
        if getattr(self._has_turn, "yes", False):
            self._has_turn.yes = False
            self._turn.release()

    def tried(self, statements: list[str]) -> str:
        """Run statements in the transaction, all or none; the error, or nothing."""
        handle = self.get_thread_connection().handle
        with handle.cursor() as cursor:
            cursor.execute(f"SAVEPOINT {_SAVEPOINT}")
            try:
                for sql in statements:
                    _LOG.debug(f"On {self.get_thread_connection().name}: {sql}")
                    cursor.execute(sql)
            except psycopg2.Error as error:
                cursor.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
                return str(error).strip()
            cursor.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
        return ""

    def commit(self) -> None:
        """COMMIT, which ends the turn, too."""
        try:
            super().commit()
        finally:
            self.give_turn()

    def release(self) -> None:
        """End the work for a node."""
        try:
            super().release()
        finally:
            self.give_turn()
