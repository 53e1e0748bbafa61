r"""A small client, for machines without psql.

Values are shown as the server writes them. A SUBSCRIBE shows rows as they come, until it is
interrupted. Standard input that is no terminal is run statement by statement. Backslash commands:
``\d`` lists relations, ``\d NAME`` shows the columns of one, ``\q`` ends, ``\?`` helps.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from noonmark.errors import ConfigError

HELP = r"""Statements end with a semicolon.  \d [NAME]  relations, or the columns of one
                                  \q         end"""
_COPY = re.compile(r"\s*copy\b.*\b(?P<way>to\s+stdout|from\s+stdin)\b", re.I | re.S)
_SUBSCRIBE = re.compile(r"\s*subscribe\b", re.I)
_NUMBERS = frozenset({20, 21, 23, 700, 701, 1700})
_RELATIONS = """
    SELECT n.nspname AS schema, c.relname AS name,
           CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index'
                          WHEN 'm' THEN 'materialized view' ELSE 'source' END AS kind
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'mz_catalog', 'mz_internal',
                            'noonmark')
    ORDER BY 1, 2"""
_COLUMNS = """
    SELECT a.attname AS column, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
           CASE WHEN a.attnotnull THEN 'not null' END AS nullable
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    WHERE c.relname = %s AND a.attnum > 0
    ORDER BY a.attnum"""


def run(url: str, commands: list[str]) -> int:
    """Talk to the server; the exit status.

    Raises:
        ConfigError: there is no such server, or it lets nobody in.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.Error as error:
        raise ConfigError(f'cannot connect to "{_shown(url)}"', detail=str(error).strip()) from None
    with connection:
        client = Client(connection)
        if commands:
            return client.run_all(commands)
        if not sys.stdin.isatty():
            return client.run_all(statements(sys.stdin))
        return client.talk()


def _shown(url: str) -> str:
    """The URL without its password."""
    return re.sub(r"(//[^:/@]*):[^@]*@", r"\1@", url)


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Texts that end with a semicolon at the end of a line, and what is left at the end."""
    gathered = ""
    for line in lines:
        gathered += line
        if line.rstrip().endswith(";") or line.lstrip().startswith("\\"):
            yield gathered
            gathered = ""
    if gathered.strip():
        yield gathered


class Client:
    """One connection and a screen."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        # What goes into a file or a pipe is never cut to the width of a screen.
        width = None if sys.stdout.isatty() else 100_000
        self._screen = Console(width=width, highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)
        connection.add_notice_handler(self._notice)

    def run_all(self, texts: Iterable[str]) -> int:
        """Run them in turn; the first error ends the rest, and is the exit status."""
        for text in texts:
            if not self.run(text):
                return 1
        return 0

    def talk(self) -> int:
        """Ask for statements until the user ends."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - it gives `input` its history
        self._screen.print(r"Type SQL, \? for help, \q to end.")
        gathered = ""
        while True:
            try:
                line = input("noonmark-> " if gathered.strip() else "noonmark=> ")
            except EOFError:
                self._screen.print()
                return 0
            except KeyboardInterrupt:
                self._screen.print()
                gathered = ""
                continue
            if not gathered and line.strip() in (r"\q", "exit", "quit"):
                return 0
            gathered += line + "\n"
            if gathered.lstrip().startswith("\\") or line.rstrip().endswith(";"):
                self.run(gathered)
                gathered = ""

    def run(self, text: str) -> bool:
        """Run a text of statements and show what comes; whether it went well."""
        try:
            self._run(text)
        except KeyboardInterrupt:
            self._connection.cancel_safe()
            self._errors.print("cancelled")
        except psycopg.Error as error:
            self._error(text, error)
            return False
        return True

    def _run(self, text: str) -> None:
        word, _, rest = text.strip().partition(" ")
        if word.startswith("\\"):
            return self._backslash(word, rest.strip().rstrip(";"))
        cursor = self._connection.cursor()
        copy = _COPY.match(text)
        if copy is not None:
            return self._copy(cursor, text, copy["way"].lower().startswith("to"))
        if _SUBSCRIBE.match(text):
            return self._stream(cursor, text)
        cursor.execute(text.encode())
        while True:
            self._show(cursor.pgresult)
            if not cursor.nextset():
                return None

    def _backslash(self, word: str, name: str) -> None:
        cursor = self._connection.cursor()
        if word == r"\d" and name:
            cursor.execute(_COLUMNS, [name])
        elif word == r"\d":
            cursor.execute(_RELATIONS)
        else:
            return self._screen.print(escape(HELP))
        return self._show(cursor.pgresult)

    def _copy(self, cursor: psycopg.Cursor[Any], text: str, out: bool) -> None:
        with cursor.copy(text.encode()) as copy:
            if out:
                for piece in copy:
                    sys.stdout.buffer.write(piece)
            else:
                while piece := sys.stdin.buffer.read(1 << 16):
                    copy.write(piece)
        sys.stdout.flush()

    def _stream(self, cursor: psycopg.Cursor[Any], text: str) -> None:
        """Rows as they come, a line each."""
        for number, row in enumerate(cursor.stream(text.encode())):
            if number == 0:
                _line(column.name for column in cursor.description or ())
            _line("NULL" if value is None else str(value) for value in row)

    def _show(self, result: Any) -> None:
        """A result as a table, or its tag."""
        if result is None or result.status == ExecStatus.EMPTY_QUERY:
            return
        if result.status != ExecStatus.TUPLES_OK:
            self._screen.print(escape((result.command_status or b"").decode()))
            return
        table = Table()
        for column in range(result.nfields):
            right = result.ftype(column) in _NUMBERS
            name = escape(result.fname(column).decode())
            table.add_column(name, justify="right" if right else "left", overflow="fold")
        for row in range(result.ntuples):
            values = [result.get_value(row, column) for column in range(result.nfields)]
            cells = ["[dim]NULL[/dim]" if v is None else escape(v.decode()) for v in values]
            table.add_row(*cells)
        self._screen.print(table)
        self._screen.print(f"({result.ntuples} row{'' if result.ntuples == 1 else 's'})")

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        self._errors.print(escape(f"{notice.severity}:  {notice.message_primary}"))

    def _error(self, text: str, error: psycopg.Error) -> None:
        """As psql shows it: the message, the place, the detail, the hint."""
        told = error.diag
        if told.message_primary is None:
            self._errors.print(escape(f"ERROR:  {error}"))
            return
        lines = [f"{told.severity}:  {told.message_primary}"]
        if told.statement_position is not None:
            lines += marked(text, int(told.statement_position))
        for name, said in (("DETAIL", told.message_detail), ("HINT", told.message_hint)):
            if said:
                lines.append(f"{name}:  {said}")
        self._errors.print(escape("\n".join(lines)))


def _line(cells: Iterable[str]) -> None:
    sys.stdout.write("\t".join(cells) + "\n")
    sys.stdout.flush()


def marked(text: str, position: int) -> list[str]:
    r"""The line of a text that has a position (from 1), and a mark under it.

    >>> marked("select\n  nope", 10)
    ['LINE 2:   nope', '          ^']
    """
    before = text[: position - 1]
    number = before.count("\n") + 1
    head = f"LINE {number}: "
    column = len(before) - (before.rfind("\n") + 1)
    return [head + text.split("\n")[number - 1], " " * (len(head) + column) + "^"]
