"""Secrets planted wherever text can appear, and looked for wherever text is recorded.

Every plant is a mark of its own in a statement (or a request) that a careless or hostile client
sends; some work, some fail, some do not parse. Then everything that the server shows is read by a
superuser: each system relation, SHOW, EXPLAIN, the errors that came back, its figures, its log, its
files, and its command line. A mark that is found anywhere is a violation.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg

#: {} is the mark: statements that hold a secret, whether they work or not.
PLANTED = (
    "create secret planted_1 as '{}'",
    "create secret planted_2 as E'{}'",
    "create secret planted_3 as $q${}$q$",
    "create secret planted_4 as '{}' || 'x'",
    "create secret planted_1 as '{}'",
    "create secret planted_5 as '{}'::int",
    "create secret planted_6 as decode('{}', 'base64')",
    "create secret planted_7 as (select '{}' from nothing)",
    "create secret planted_8 as {}",
    "alter secret planted_1 as '{}'",
    "alter secret planted_1 as '{}'::date",
    "alter secret nothing as '{}'",
    "alter secret planted_1 '{}'",
    "alter secret planted_1 to '{}'",
    "alter secret planted_1 set value = '{}'",
    "creat secret s as '{}'",
    "create secret s as '{}",
    "create secret if not exists planted_1 as '{}'",
    "create role planted_a password '{}'",
    "create role planted_a password '{}'",
    "create role planted_b passwrod '{}' password '{}'",
    "create user planted_c with login password '{}'",
    "alter role planted_a password '{}'",
    "alter role nothing password '{}'",
    "alter role planted_a password '{}",
    "alter role planted_a with nonsense password '{}'",
    "create connection planted_d to postgres (host 'h.example', password '{}')",
    "create connection planted_e to kafka (broker 'h.example:1', sasl password '{}')",
    "create connection planted_f to confluent schema registry (url 'http://me:{}@h.example:1')",
    "create connection planted_g to postgres (host 'h.example', password secret planted_2)",
    "alter connection planted_g set (password = '{}')",
    "create source planted_h from files 's3://none/x?aws_secret_access_key={}&region=x"
    "&aws_access_key_id=a&aws_endpoint=http://127.0.0.1:1' format text",
    "create source planted_i from files 'ftp://me:{}@h/x' format text",
    "create source planted_j from webhook body format text check (with (body, secret planted_1 as "
    "k) body = k and '{}' = '{}' or password = '{}')",
    "set planted.password = '{}'",
    "set planted.api_token to '{}'",
    "set password = '{}'",
    "select set_config('planted.password', '{}', false)",
    "select * from nothing where password = '{}'",
    "select 'postgres://me:{}@h/db' from nothing",
    "begin; create secret planted_k as '{}'; rollback",
    "prepare p as create secret planted_l as '{}'",
    "explain create secret planted_m as '{}'",
    "copy (select 1) to 's3://b/x?secret={}'",
)
#: Marks that may be in the files of the location: a URL of FILES is kept as it was written.
IN_FILES = frozenset(("aws_secret_access_key",))


class Planting:
    """Plants marks in a server, and looks for them."""

    def __init__(self, seed: int, dsn: str, http: str) -> None:
        self._seed, self._dsn, self._http = seed, dsn, http
        self.marks: dict[str, str] = {}
        self._said: list[tuple[str, str]] = []

    def mark(self, where: str) -> str:
        """A mark that is nowhere else; it reads as base64, too."""
        made = f"mark{self._seed}x{len(self.marks)}x"
        self.marks[made] = where
        return made

    def plant(self) -> None:
        """Send every statement by every front end; keep what came back."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("set statement_timeout = '5s'")
            connection.add_notice_handler(
                lambda each: self._said.append(("notice", f"{each.message_primary}"))
            )
            for sql in PLANTED:
                self._by_pgwire(connection, sql.replace("{}", self.mark(sql)))
                with_values = sql.replace("'{}'", "%s") if sql.startswith("create secret") else ""
                if with_values.count("%s") == 1 and "{}" not in with_values:
                    self._by_pgwire(connection, with_values, self.mark(f"{sql} as a parameter"))
        for sql in PLANTED:
            self._by_http(sql.replace("{}", self.mark(f"{sql} by http")))
        self._posts()

    def _by_pgwire(self, connection: psycopg.Connection, sql: str, *values: str) -> None:
        try:
            if values:
                connection.execute(sql.encode(), values)
            else:
                connection.execute(sql.encode(), prepare=False)
        except psycopg.Error as error:
            said = error.diag
            told = (said.message_primary, said.message_detail, said.message_hint, said.context,
                    said.internal_query)  # fmt: skip
            self._said.append((f"error of {sql[:30]}", " ".join(filter(None, told))))

    def _by_http(self, sql: str) -> None:
        answer = self._post("/api/sql", json.dumps({"query": sql}).encode())
        for each in json.loads(answer)["results"]:
            told = {name: value for name, value in each.items() if name != "rows"}
            self._said.append((f"http of {sql[:30]}", json.dumps(told)))

    def _posts(self) -> None:
        """Requests that are wrong in themselves."""
        password = self.mark("the password of a request")
        pair = base64.b64encode(f"noonmark:{password}".encode()).decode()
        self._said.append(("401", self._post("/api/sql", b"{}", Authorization=f"Basic {pair}")))
        body = json.dumps({"query": 1, "password": self.mark("a request that is none")}).encode()
        self._said.append(("400", self._post("/api/sql", body)))
        body = self.mark("a post to a webhook that is none").encode()
        self._said.append(("404", self._post("/api/webhook/none", body)))

    def _post(self, path: str, body: bytes, **headers: str) -> str:
        sent = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(f"http://{self._http}{path}", body, sent)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    # -- looking ---------------------------------------------------------------------------------

    def shown(self) -> Iterator[tuple[str, str]]:
        """Everything that the server shows to a superuser, and where."""
        yield from self._said
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            relations = connection.execute(
                "select n.nspname, c.relname from pg_class c join pg_namespace n on "
                "n.oid = c.relnamespace where c.relkind in ('v', 'r') order by 1, 2"
            ).fetchall()
            connection.execute("set statement_timeout = '2s'")  # a source may have no rows yet
            for schema, name in relations:
                try:
                    rows = connection.execute(f'select * from "{schema}"."{name}"').fetchall()
                except psycopg.Error as error:
                    yield f"{schema}.{name}", str(error)
                else:
                    yield f"{schema}.{name}", repr(rows)
            for what in ("all", "secrets", "connections", "sources", "roles", "objects"):
                yield f"show {what}", repr(connection.execute(f"show {what}".encode()).fetchall())
            for kind in ("connection", "source"):
                for row in connection.execute(f"show {kind}s".encode()).fetchall():
                    asked = f'show create {kind} "{row[0]}"'
                    try:
                        yield asked, repr(connection.execute(asked.encode()).fetchall())
                    except psycopg.Error as error:
                        yield asked, str(error)
        with urllib.request.urlopen(f"http://{self._http}/metrics", timeout=60) as answer:
            yield "/metrics", answer.read().decode()

    def found(self, places: Iterator[tuple[str, str]]) -> list[str]:
        """Where marks are that should not be."""
        return [
            f"{self.marks[mark]}: in {where}"
            for where, text in places
            for mark in self.marks
            if mark in text
        ]

    def in_files(self, folder: Path) -> list[str]:
        """Marks in the files of a location, except those that are kept as they were written."""
        wrong = []
        for file in folder.rglob("*"):
            if file.is_file():
                raw = file.read_bytes()
                wrong += [
                    f"{where}: in {file.name}"
                    for mark, where in self.marks.items()
                    if mark.encode() in raw and not any(each in where for each in IN_FILES)
                ]
        return wrong
