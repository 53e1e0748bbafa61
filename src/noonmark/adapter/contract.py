"""What a front end (pgwire, HTTP, the embedded API) may ask of a session, and what it gets.

A session is one conversation: its settings, its transaction, its prepared text. One statement runs
at a time; `Session.cancel` may come from anywhere. A statement gives exactly one `Outcome`:

- `Done`: it did something; the tag says what.
- `Rows`: fields and chunks of rows, each row a tuple of the Python values of `noonmark.rows`.
- `CopyOut`: rows that the client gets as text or CSV.
- `CopyIn`: the client sends rows; nothing of them is there until `finish` returns.

Rows come in chunks so that a large result is never whole in memory; a `SUBSCRIBE` is a `Rows` whose
chunks come as they happen. Whoever got an outcome must exhaust it or close it: it may hold a time.
Errors are `NoonmarkError`, with SQLSTATE, detail, hint and position; a position counts the
characters of the text that `prepare` was given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

from noonmark.errors import NoonmarkError
from noonmark.rows.types import SqlType

#: "idle": no transaction. "open": inside one. "failed": inside one that an error ended.
TransactionStatus = Literal["idle", "open", "failed"]

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Field:
    """One column of a result. Names may repeat."""

    name: str
    type: SqlType


@dataclass(frozen=True)
class Notice:
    """Something that the client should know and that is no error."""

    message: str
    severity: Literal["NOTICE", "WARNING", "INFO", "DEBUG"] = "NOTICE"
    sqlstate: str = "00000"
    detail: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Notification:
    """What a session that listens is told: by whom, on which channel, what."""

    sender: int
    channel: str
    payload: str


class Inbox(Protocol):
    """Notifications that came; `wake` is called where one comes."""

    wake: Callable[[], None] | None
    #: Called where the conversation is over: it was ended, or the client took too little.
    end: Callable[[NoonmarkError], None] | None

    def take(self) -> Sequence[Notification]:
        """Those that came since; they are told once."""


class Account(Protocol):
    """What a session keeps for its client, counted by the sort of thing."""

    def take(self, what: str, size: int, count: int = 1) -> None:
        """Count something that is about to be kept; raises where there is no room for it."""

    def free(self, what: str, size: int, count: int = 1) -> None:
        """It is kept no longer."""


@dataclass(frozen=True)
class Prepared:
    """One statement that was understood.

    Attributes:
        text: the statement as it was written; empty for an empty statement.
        parameters: the types of $1, $2, ...
        fields: the result's columns; None when it gives no rows.
        statement: what the adapter made of it; opaque to front ends.
    """

    text: str
    parameters: tuple[SqlType, ...]
    fields: tuple[Field, ...] | None
    statement: Any


@dataclass(frozen=True)
class Done:
    """A statement that gave no rows. `tag` is PostgreSQL's: ``INSERT 0 3``; "" if it was empty."""

    tag: str
    notices: tuple[Notice, ...] = ()


class Chunks(Protocol):
    """Rows as they come, in chunks of any size."""

    def __aiter__(self) -> AsyncIterator[Sequence[Row]]: ...

    async def aclose(self) -> None:
        """Let go of whatever the rest of the rows would have needed. Idempotent."""


@dataclass(frozen=True)
class Rows:
    """A statement that gives rows. The tag is `verb` and the number of rows that were taken."""

    fields: tuple[Field, ...]
    chunks: Chunks
    verb: str = "SELECT"  # "INSERT 0" for RETURNING, "FETCH", "SHOW" (without a count), ...
    counted: bool = True
    notices: tuple[Notice, ...] = ()


class Answer(NamedTuple):
    """The rows of a SELECT that are there already, all of them."""

    fields: tuple[Field, ...]
    rows: list[Row]


@dataclass(frozen=True)
class CopyFormat:
    """How rows are written in a COPY."""

    kind: Literal["text", "csv", "binary"] = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'


@dataclass(frozen=True)
class CopyOut:
    """Rows for the client's COPY TO STDOUT."""

    fields: tuple[Field, ...]
    chunks: Chunks
    format: CopyFormat


class CopyIn(Protocol):
    """A COPY FROM STDIN under way."""

    fields: tuple[Field, ...]
    format: CopyFormat
    #: Whether `write_table` may take what comes.
    takes_tables: bool

    async def write(self, rows: Sequence[Row]) -> None:
        """More rows, their values already of the fields' types."""

    def write_table(self, table: pa.Table) -> bool:
        """More rows, as columns of the fields' types; False where it needs them as rows."""

    async def finish(self) -> Done:
        """All were sent: they are there, durable, once this returns."""

    async def fail(self) -> None:
        """The client gave up: nothing happened."""


Outcome = Done | Rows | CopyOut | CopyIn


class Session(Protocol):
    """One conversation."""

    id: int
    secret: int

    @property
    def account(self) -> Account:
        """What is kept for it, also by the front end."""

    @property
    def inbox(self) -> Inbox:
        """What NOTIFY said to it; a client is told between its transactions."""

    @property
    def status(self) -> TransactionStatus:
        """Where the transaction stands."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the front end reports: client_encoding, DateStyle, TimeZone, ..."""

    @property
    def statements(self) -> MutableMapping[str, Prepared]:
        """The named prepared statements: PREPARE and the protocol's Parse share them."""

    async def split(self, text: str) -> Sequence[str]:
        """The statements of a text, each a verbatim piece of it; raises `InvalidSyntax`."""

    async def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        """Understand one statement; `types` are those of parameters that the client stated."""

    async def ask(self, text: str) -> Outcome:
        """Understand and run one statement without parameters, as a simple query is."""

    def fast_path(self, prepared: Prepared, values: Sequence[Any] = ()) -> Answer | None:
        """What `execute` would give, where it is known without waiting; None where it is not.

        Where it is None nothing has happened: call `execute`.
        """

    async def execute(
        self, prepared: Prepared, values: Sequence[Any] = (), *, fixed: bool = False
    ) -> Outcome:
        """Run it with values for its parameters, each of the parameter's type.

        With `fixed` the client was told of the columns: `Unsupported` where they are others now, as
        after ADD COLUMN under `SELECT *`; then nothing has happened.
        """

    def cursor_fields(self, name: str) -> tuple[Field, ...] | None:
        """The columns of a cursor of DECLARE, which clients describe as a portal; None: no such."""

    def begin_implicit(self) -> None:
        """Several statements were sent as one (a text with more than one, a pipeline).

        Outside a transaction they are one until `end_implicit`, as in PostgreSQL; BEGIN, COMMIT and
        ROLLBACK among them mean what they mean there. A statement alone needs no such call.
        """

    async def end_implicit(self, commit: bool) -> None:
        """The last of them ended: commit what they did, or after an error undo it.

        Nothing happens without `begin_implicit`, or where BEGIN made the transaction explicit.
        """

    def fail(self) -> None:
        """An error was told to the client: an explicit transaction has failed. Idempotent.

        Also for errors that only the front end sees, such as a parameter that cannot be read.
        """

    def cancel(self) -> None:
        """Ask the statement under way to end with `QueryCanceled`. Safe at any moment."""

    async def close(self) -> None:
        """End the conversation: its transaction is rolled back, its holds are let go."""


class Sessions(Protocol):
    """Where front ends get their sessions."""

    async def connect(
        self, user: str, database: str, settings: Mapping[str, str], peer: str
    ) -> Session:
        """A new session for an authenticated user."""

    async def verifier(self, user: str) -> str | None:
        """The user's SCRAM-SHA-256 verifier; None when the user has no password or is unknown."""

    def cancel(self, id: int, secret: int) -> None:
        """Cancel what the session of that id does, if the secret is right."""

    async def receive(self, name: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Take a post to a webhook; done when it is durable."""

    def troubles(self) -> list[str]:
        """Why a part that serves people does not, a line each; empty while all do."""
