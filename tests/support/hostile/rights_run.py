"""Cells of the matrix of rights on real servers: ours by every front end, and PostgreSQL."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import psycopg
from websockets.sync.client import ClientConnection, connect

from support.hostile.rights_matrix import ROLES, Cell

DENIED = "42501"
#: PostgreSQL's GRANT of who may not is a warning where they have some right on the object.
NOTHING_GRANTED = "01007"
FRONTS = ("pgwire", "http", "websocket")


class Client(Protocol):
    """One user's way to run statements: the SQLSTATE of the first that fails, or ""."""

    def run(self, statements: Sequence[str]) -> str: ...

    def close(self) -> None: ...


class Pgwire:
    """PostgreSQL's protocol, of any server."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self.warned: list[str] = []
        self._connection.add_notice_handler(lambda each: self.warned.append(str(each.sqlstate)))

    def run(self, statements: Sequence[str]) -> str:
        failed = ""
        for sql in statements:
            try:
                if sql.startswith("copy "):
                    with self._connection.cursor().copy(sql.encode()) as copy:
                        copy.write("1\t1\n")
                else:
                    self._connection.execute(sql.encode())
            except psycopg.Error as error:
                failed = failed or str(error.sqlstate)
        return failed

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql.encode()).fetchall()

    def close(self) -> None:
        self._connection.close()


class Http:
    """POST /api/sql: a session for each request."""

    def __init__(self, place: str, user: str) -> None:
        self._url = f"http://{place}/api/sql"
        self._user = base64.b64encode(f"{user}:pw".encode()).decode()

    def run(self, statements: Sequence[str]) -> str:
        body = json.dumps({"queries": [{"query": sql} for sql in statements]}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {self._user}"}
        request = urllib.request.Request(self._url, body, headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            results = json.loads(answer.read())["results"]
        return next((str(each["error"]["code"]) for each in results if "error" in each), "")

    def close(self) -> None:
        pass


class Socket:
    """WebSocket /api/sql: a session that stays."""

    def __init__(self, place: str, user: str) -> None:
        self._stack = ExitStack()
        opened = connect(f"ws://{place}/api/sql")
        self._socket: ClientConnection = self._stack.enter_context(opened)
        self._socket.send(json.dumps({"user": user, "password": "pw"}))
        self._until_ready()

    def _until_ready(self) -> str:
        failed = ""
        while True:
            said = json.loads(self._socket.recv(timeout=300))
            if said["type"] == "Error":
                failed = failed or str(said["payload"]["code"])
            if said["type"] == "ReadyForQuery":
                return failed

    def run(self, statements: Sequence[str]) -> str:
        failed = ""
        for sql in statements:
            self._socket.send(json.dumps({"query": sql}))
            failed = self._until_ready() or failed
        return failed

    def close(self) -> None:
        self._stack.close()


class Ours:
    """Our server: a superuser, and every user by every front end."""

    def __init__(self, host: str, pg: int, http: str) -> None:
        self._pg, self._http = f"host={host} port={pg} dbname=noonmark", http
        self.root = Pgwire(f"{self._pg} user=noonmark")
        self._clients: dict[tuple[str, str], Client] = {}
        for sql in ROLES:
            assert self.root.run([sql]) == "", sql

    def client(self, front: str, user: str) -> Client:
        """The one of a front end and a user."""
        key = (front, user)
        if key not in self._clients:
            made: Client
            if front == "pgwire":
                made = Pgwire(f"{self._pg} user={user} password=pw")
            elif front == "http":
                made = Http(self._http, user)
            else:
                made = Socket(self._http, user)
            self._clients[key] = made
        return self._clients[key]

    def close(self) -> None:
        for client in (self.root, *self._clients.values()):
            client.close()


class Theirs:
    """PostgreSQL, with the same roles."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.root = Pgwire(dsn)
        for sql in ROLES:
            assert self.root.run([sql]) == "", sql
        self._clients: dict[str, Pgwire] = {}

    def client(self, user: str) -> Pgwire:
        """The one of a user."""
        if user not in self._clients:
            self._clients[user] = Pgwire(psycopg.conninfo.make_conninfo(self._dsn, user=user))
        return self._clients[user]

    def close(self) -> None:
        for client in (self.root, *self._clients.values()):
            client.close()


def tried(server: Ours, cell: Cell, fronts: Sequence[str]) -> list[str]:
    """What is wrong with a cell on our server, in a sentence each."""
    wrong = []
    for front in fronts:
        wrong += _prepared(server.root, cell)
        state = server.client(front, cell.user).run(cell.statements)
        if (state != DENIED) != cell.allowed:
            wrong.append(f"{cell} by {front}: {state or 'it works'}, allowed {cell.allowed}")
        server.root.run(cell.after)
    return wrong


def judged(server: Theirs, cell: Cell) -> list[str]:
    """Where PostgreSQL says otherwise than the table."""
    wrong = _prepared(server.root, cell)
    client = server.client(cell.user)
    client.warned.clear()
    state = client.run(cell.statements)
    if NOTHING_GRANTED in client.warned:
        state = DENIED
    if (state != DENIED) != cell.allowed:
        wrong.append(f"{cell}: PostgreSQL says {state or 'it works'}, allowed {cell.allowed}")
    server.root.run(cell.after)
    return wrong


def _prepared(root: Pgwire, cell: Cell) -> list[str]:
    states = [(sql, root.run([sql])) for sql in cell.before]
    return [f"{cell}: {sql} failed with {state}" for sql, state in states if state]
