"""Every right that the table in the code names, tried: who has it works, who has not is refused.

A *place* is a row of `catalog.rights.NEEDS` for one kind of object: a statement, the part that the
object has in it, the right. A *way* is how a role comes to have the right, or nearly has it. A
*cell* is a place and a way: SQL that makes the object and the grants, the statement, and whether
the table says that it is allowed. `cells` makes all of them from the table; a place without a
template is an error, so that a new row cannot go untried.

What PostgreSQL has too can be run there, with the same roles, grants and text: its answer is not
made from the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from noonmark.adapter.catalog.privilege import PRIVILEGES
from noonmark.adapter.catalog.rights import NAME, NEEDS, OWN

#: How a role has the right: (way, who logs in, who has it).
HAVE = {
    "direct": ("direct", "direct"),
    "inherited": ("member", "team"),
    "set role": ("closed", "closed_team"),
    "public": ("nobody", "public"),
    "superuser": ("boss", None),
}
#: How a role nearly has it.
LACK = {
    "nothing": ("nobody", None),
    "not inherited": ("closed", "closed_team"),
    "other rights": ("direct", "direct"),
    "other object": ("direct", "direct"),
    "no schema": ("direct", "direct"),
}
ROLES = (
    "create role team nologin",
    "create role closed_team nologin",
    "create role direct login password 'pw'",
    "create role member login password 'pw'",
    "create role closed noinherit login password 'pw'",
    "create role nobody login password 'pw'",
    "create role boss superuser login password 'pw'",
    "grant team to member",
    "grant closed_team to closed",
)
#: What DDL calls a kind.
WORDS = {
    "subsource": "source",
    "progress": "source",
    "materialized-view": "materialized view",
}
#: What makes an object ``s.o`` of a kind (``s.src_remap`` and the like are its own names).
MAKERS = {
    "table": ("create table {s}.o (a int primary key, b int)",),
    "source": ("create source {s}.o from load generator counter",),
    "subsource": ("create source {s}.src from load generator auction for tables (users as {s}.o)",),
    "progress": ("create source {s}.src from load generator counter",),
    "errors": ("create source {s}.src from load generator counter",),
    "view": ("create view {s}.o as select 1 as a, 2 as b",),
    "materialized-view": ("create materialized view {s}.o as select 1 as a, 2 as b",),
    "index": ("create table {s}.t (a int, b int)", "create index o on {s}.t (b)"),
    "connection": (
        "create connection {s}.o to postgres (host '127.0.0.1', port 1, user 'postgres')",
    ),
    "secret": ("create secret {s}.o as 'value'",),
    # Everybody has USAGE of a new type, as in PostgreSQL.
    "type": ("create type {s}.o as enum ('a', 'b')", "revoke usage on type {s}.o from public"),
    "schema": (),
    "database": (),
    "system": (),
}
NAMES = {"progress": "{s}.src_remap", "errors": "{s}.src_errors", "schema": "{s}",
         "database": "{db}", "system": "pg_catalog.pg_class"}  # fmt: skip
#: The statement of a place, by statement and part; {o} is the object, {w} a schema for everybody.
STATEMENTS = {
    ("SELECT", "relation"): "select * from {o}",
    ("SUBSCRIBE", "relation"): "begin; declare c cursor for subscribe to (select * from {o}); "
    "rollback",
    ("EXPLAIN MATERIALIZED VIEW", "view"): "explain materialized view {o}",
    ("AUDIT MATERIALIZED VIEW", "view"): "audit materialized view {o}",
    ("SHOW", "object"): "show columns from {o}",
    ("INSERT", "target"): "insert into {o} values (1, 1)",
    ("INSERT", "conflicting target"): "insert into {o} values (1, 1) on conflict (a) do update "
    "set b = 3",
    ("INSERT", "read target"): "insert into {o} values (1, 1) returning b",
    ("INSERT", "relation"): "insert into {w}.mine select 1, 2 from {o} where false",
    ("UPDATE", "target"): "update {o} set b = 1",
    ("UPDATE", "read target"): "update {o} set b = 1 where a = 1",
    ("UPDATE", "relation"): "update {w}.mine set b = 1 where exists (select 1 from {o})",
    ("DELETE", "target"): "delete from {o}",
    ("DELETE", "read target"): "delete from {o} where a = 1",
    ("DELETE", "relation"): "delete from {w}.mine where exists (select 1 from {o})",
    ("MERGE", "read target"): "merge into {o} t using (values (1)) s (x) on t.a = s.x "
    "when matched then update set b = 2",
    ("MERGE", "relation"): "merge into {w}.mine using (select 1 as x from {o} where false) s "
    "on false when matched then delete",
    ("TRUNCATE", "target"): "truncate table {o}",
    ("LOCK TABLE", "relation"): "begin; lock table {o} in access share mode; commit",
    ("CREATE TEMPORARY", "database"): "create temporary table x (a int)",
    ("REFRESH MATERIALIZED VIEW", "view"): "refresh materialized view {o}",
    ("COPY FROM", "target"): "copy {o} from stdin",
    ("CREATE TABLE", "schema"): "create table {o}.x (a int)",
    ("CREATE TABLE", "relation"): "create table {w}.x (like {o})",
    ("CREATE TABLE", "type"): "create table {w}.x (a {o})",
    ("CREATE TYPE", "schema"): "create type {o}.x as enum ('a')",
    ("ALTER TYPE", "object"): "alter type {o} add value 'c'",
    ("CREATE DOMAIN", "schema"): "create domain {o}.x as int check (value > 0)",
    ("CREATE DOMAIN", "type"): "create domain {w}.x as {o}",
    ("ALTER DOMAIN", "object"): "alter domain {o} set default 'a'",
    ("ALTER TABLE", "type"): "alter table {w}.own add column c {o} default 'a'",
    ("ALTER TABLE ADD COLUMN", "type"): "alter table {w}.own add column c {o}",
    ("CREATE VIEW", "schema"): "create view {o}.x as select 1 as a",
    ("CREATE MATERIALIZED VIEW", "schema"): "create materialized view {o}.x as select 1 as a",
    ("CREATE SOURCE", "schema"): "create source {o}.x from load generator counter",
    ("CREATE SINK", "schema"): "create sink {o}.x from {w}.mine into kafka connection {w}.k "
    "envelope debezium",
    ("CREATE CONNECTION", "schema"): "create connection {o}.x to kafka (broker 'h.example:1')",
    ("CREATE SECRET", "schema"): "create secret {o}.x as 'value'",
    ("CREATE INDEX", "schema"): "create index x on {o}.t (a)",
    ("CREATE SCHEMA", "database"): "create schema {w}_x",
    ("CREATE VIEW", "relation"): "create view {w}.x as select 1 as one from {o}",
    ("CREATE VIEW", "replaced"): "create or replace view {o} as select 1 as a, 2 as b",
    ("CREATE MATERIALIZED VIEW", "relation"): "create materialized view {w}.x as "
    "select 1 as one from {o} where false",
    ("CREATE MATERIALIZED VIEW", "replaced"): "create or replace materialized view {o} as "
    "select 1 as a",
    ("CREATE INDEX", "relation"): "create index x on {o} ({column})",
    ("CREATE SOURCE", "connection"): "create source {w}.x from postgres connection {o} "
    "(publication 'none') for all tables",
    ("CREATE SOURCE", "secret"): "create source {w}.x from webhook body format text "
    "check (with (body, secret {o} as k) body = k)",
    ("CREATE SINK", "relation"): "create sink {w}.x from {o} into kafka connection {w}.k "
    "envelope debezium",
    ("CREATE SINK", "connection"): "create sink {w}.x from {w}.mine into kafka connection {o} "
    "envelope debezium",
    ("CREATE CONNECTION", "secret"): "create connection {w}.x to postgres (host 'h.example', "
    "password secret {o})",
    ("VALIDATE CONNECTION", "connection"): "validate connection {o}",
    ("ALTER SECRET", "object"): "alter secret {o} as 'another'",
    ("ALTER CONNECTION", "object"): "alter connection {o} set (port = 2)",
    ("ALTER CONNECTION", "secret"): "alter connection {w}.c set (password = secret {o})",
    ("ALTER SET", "object"): "alter {word} {o} set (retain history for '1h')",
    ("ALTER TABLE", "object"): "alter table {o} alter column b set default 1",
    ("CREATE SEQUENCE", "schema"): "create sequence {o}.x",
    ("ALTER TABLE ADD COLUMN", "object"): "alter table {o} add column c int",
    ("ALTER SET SCHEMA", "object"): "alter {word} {o} set schema {w}",
    ("ALTER SET SCHEMA", "schema"): "alter table {w}.own set schema {o}",
    ("ALTER RENAME", "object"): "alter {word} {o} rename to renamed",
    ("ALTER RENAME", "schema"): "alter table {o}.t rename to renamed",
    ("ALTER OWNER", "object"): "alter {word} {o} owner to {actor}",
    ("COMMENT", "object"): "comment on {word} {o} is 'x'",
    ("DROP", "object"): "drop {word} {o}",
    ("GRANT", "object"): "grant {some} on {on} {o} to team",
}
#: Places that other tests try, and why they cannot be cells here.
APART = {
    ("ALTER OWNER", "schema"): "it is the new owner who needs it: tests/adapter/test_access.py",
    ("ALTER OWNER", "database"): "likewise",
    ("ALTER SEQUENCE", "object"): "tests/adapter/test_sequences.py",
    ("ALTER SEQUENCE", "table"): "likewise",
    ("CREATE SOURCE", "type"): "sources take no columns of such types",
}
#: What a statement needs besides, for everybody: rights on the object, or to own something.
BESIDES = {
    ("INSERT", "conflicting target"): ("insert", "select"),
    ("INSERT", "read target"): ("insert",),
    ("UPDATE", "read target"): ("update",),
    ("DELETE", "read target"): ("delete",),
    ("MERGE", "read target"): ("update",),
    ("CREATE INDEX", "schema"): ("usage",),
    ("ALTER RENAME", "schema"): ("usage",),
}
_POSTGRES_KINDS = ("table", "view", "materialized-view", "index", "schema", "database")
_POSTGRES = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY FROM"),
    "CREATE TABLE",
    *("CREATE VIEW", "CREATE MATERIALIZED VIEW", "CREATE INDEX", "CREATE SCHEMA", "COMMENT"),
    *(
        "ALTER TABLE",
        "CREATE SEQUENCE",
        "ALTER TABLE ADD COLUMN",
        "ALTER RENAME",
        "ALTER OWNER",
        "DROP",
        "GRANT",
    ),
)


@dataclass(frozen=True)
class Cell:
    """See the module; `before` and `after` are a superuser's."""

    place: str
    way: str
    user: str
    before: tuple[str, ...]
    statements: tuple[str, ...]
    after: tuple[str, ...]
    allowed: bool
    in_postgres: bool
    needs_spark: bool = False

    def __str__(self) -> str:
        return f"{self.place}, {self.way}: {'; '.join(self.statements)}"


def places() -> Iterator[tuple[str, str, str, str]]:
    """Statement, part, kind and right of every place; raises where one has no template."""
    for need in NEEDS:
        if (need.statement, need.part) in APART:
            continue
        assert (need.statement, need.part) in STATEMENTS, f"no template for {need}"
        for kind in need.kinds:
            # A sink wants a broker; it is dropped and shown as others are. Sequences have a test of
            # their own: tests/adapter/test_sequences.py.
            if kind not in ("sink", "sequence"):
                yield need.statement, need.part, kind, need.right


def cells(database: str = "noonmark") -> list[Cell]:
    """All cells; `database` is what the database is called."""
    found = []
    for statement, part, kind, right in places():
        for way, (user, holder) in (HAVE | LACK).items():
            cell = _cell(len(found), (statement, part, kind, right), way, (user, holder), database)
            if cell is not None:
                found.append(cell)
    return found


def _applies(place: tuple[str, str, str, str], way: str) -> bool:
    """Whether a way means something for a place."""
    statement, _, kind, right = place
    if right == "TEMPORARY" and way in LACK:  # everybody has it, as in PostgreSQL
        return False
    alone = kind in ("schema", "database", "system")  # what is in no schema of users
    if kind == "system":
        return way in ("nothing", "superuser") and right != OWN
    if kind == "database" and right == OWN:
        return way in ("nothing", "superuser", "other rights")
    if right == OWN:
        if way in ("public", "other object") or (way, place[1]) == ("no schema", "replaced"):
            return False  # what is replaced is found by where it is made
        if way == "other rights":
            return bool(PRIVILEGES.get(kind))
    if right == NAME:
        return way in ("direct", "inherited", "public", "set role", "superuser", "no schema")
    if way == "no schema":
        return not alone
    if way == "other object":
        return kind not in ("database", "index")
    if way == "other rights":
        return len(PRIVILEGES.get(kind, ())) > 1
    return statement != "ALTER OWNER" or way != "set role"


def _cell(
    number: int,
    place: tuple[str, str, str, str],
    way: str,
    who: tuple[str, str | None],
    database: str,
) -> Cell | None:
    if not _applies(place, way):
        return None
    statement, part, kind, right = place
    user, holder = who
    actor = "closed_team" if way == "set role" else user
    schema, work = f"s{number}", f"w{number}"
    name = NAMES.get(kind, "{s}.o").format(s=schema, db=database)
    word = WORDS.get(kind, kind)
    on = word if kind in ("schema", "database", "connection", "secret", "type") else ""
    fill = {
        "o": name, "w": work, "word": word, "actor": actor, "on": on,
        "some": PRIVILEGES.get(kind, ("usage",))[0], "s": schema, "db": database,
        "column": {"progress": "partition", "errors": "reason", "source": "counter",
                   "subsource": "id"}.get(kind, "a"),
    }  # fmt: skip
    if statement == "COMMENT" and kind == "errors":
        fill["word"] = "column"
        name_of_column = f"{name}.reason"
        text = f"comment on column {name_of_column} is 'x'"
    else:
        text = STATEMENTS[statement, part].format(**fill)
    before = [
        f"create schema {schema}",
        *(sql.format(**fill) for sql in MAKERS[kind]),
        f"create schema {work}",
        f"grant all on schema {work} to public",
        *_prepared(place, fill, actor),
        *(f"grant {each} on {on} {name} to public" for each in BESIDES.get((statement, part), ())),
    ]
    if way != "no schema" and kind != "schema":
        to = holder if right == NAME and holder else "public"
        before.append(f"grant usage on schema {schema} to {to}")
    before += _granted(place, way, holder, fill)
    if way == "set role":
        statements = (f"set role {actor}", *text.split("; "), "reset role")
    else:
        statements = tuple(text.split("; "))
    allowed = way in HAVE or kind == "system"
    after = [f"drop schema if exists {each} cascade" for each in (schema, work, f"{work}_x")]
    if kind == "database":
        after += [f"revoke create on database {database} from direct, team, closed_team, public"]
    return Cell(
        f"{statement} {part} ({kind}): {right}", way, user, tuple(before), statements,
        tuple(after), allowed, _in_postgres(place, way),
        "MATERIALIZED VIEW" in statement or "INDEX" in statement
        or kind in ("materialized-view", "index"),
    )  # fmt: skip


def _in_postgres(place: tuple[str, str, str, str], way: str) -> bool:
    statement, part, kind, _ = place
    if statement not in _POSTGRES or kind not in _POSTGRES_KINDS:
        return False
    if (kind, way) == ("database", "other rights"):  # USAGE is a right of Materialize's databases
        return False
    materialized = statement == "CREATE MATERIALIZED VIEW"
    if (statement, kind) == ("ALTER OWNER", "index") or (materialized and part == "replaced"):
        return False
    return not (statement == "CREATE INDEX" and kind == "view")


def _prepared(place: tuple[str, str, str, str], fill: dict[str, str], actor: str) -> list[str]:
    """What else a statement needs to be there."""
    statement, part, _, _ = place
    work, schema = fill["w"], fill["s"]
    made: list[str] = []
    if "{w}.mine" in STATEMENTS[statement, part] or part in ("connection", "relation"):
        made += [f"create table {work}.mine (a int, b int)", f"grant all on {work}.mine to public"]
    if "{w}.k" in STATEMENTS[statement, part]:
        made += [
            f"create connection {work}.k to kafka (broker 'h.example:1')",
            f"grant usage on connection {work}.k to public",
        ]
    if "{w}.own" in STATEMENTS[statement, part]:
        made += [f"create table {work}.own (a int)", f"alter table {work}.own owner to {actor}"]
    if (statement, part) == ("ALTER CONNECTION", "secret"):
        made += [
            f"create connection {work}.c to postgres (host 'h.example')",
            f"alter connection {work}.c owner to {actor}",
        ]
    if part == "schema" and statement in ("CREATE INDEX", "ALTER RENAME"):
        made += [f"create table {schema}.t (a int)", f"alter table {schema}.t owner to {actor}"]
    if statement == "CREATE INDEX" and part == "relation":
        made += [f"grant create on schema {schema} to public"]
    if (statement, part) == ("ALTER SET SCHEMA", "object"):
        made += [f"grant create on schema {work} to public"]
    if part == "replaced" or (statement, part) == ("ALTER RENAME", "object"):
        made += [f"grant create on schema {schema} to public"]
    if (statement, part) == ("ALTER OWNER", "object") and place[2] != "schema":
        made += [f"grant create on schema {schema} to public"]
    return made


def _granted(
    place: tuple[str, str, str, str], way: str, holder: str | None, fill: dict[str, str]
) -> list[str]:
    """The grants of a way."""
    statement, _, kind, right = place
    name, on, word = fill["o"], fill["on"], fill["word"]
    word = WORDS.get(kind, kind)
    if holder is None or kind == "system":
        return []
    has = PRIVILEGES.get(kind, ())
    if way == "other rights":
        rest = ", ".join(each for each in has if each != right)
        return [f"grant {rest} on {on} {name} to {holder}"] if rest else []
    if right == NAME:
        return []
    if way == "other object":
        other = fill["s"] + "_other"
        if kind == "schema":
            return [f"create schema {other}", f"grant all on schema {other} to {holder}",
                    f"drop schema {other}"]  # fmt: skip
        other = f"{fill['w']}.other"
        making = {
            "connection": f"create connection {other} to kafka (broker 'h.example:1')",
            "secret": f"create secret {other} as 'x'",
            "type": f"create type {other} as enum ('x')",
        }.get(kind, f"create table {other} (a int)")
        which = on or ""
        return [making, f"grant {right} on {which} {other} to {holder}"]
    if right == OWN:
        if kind in ("subsource", "progress", "errors"):
            return [f"alter source {fill['s']}.src owner to {holder}"]
        if statement == "ALTER OWNER" and kind == "schema":
            return [f"grant create on database {fill['db']} to {holder}",
                    f"alter schema {name} owner to {holder}"]  # fmt: skip
        if kind == "index":
            return [f"alter table {fill['s']}.t owner to {holder}"]
        return [f"alter {word} {name} owner to {holder}"]
    return [f"grant {right} on {on} {name} to {holder}"]
