"""Types that users make: in views, on the wire, after a restart, and who may use them."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors
from psycopg.types.enum import EnumInfo, register_enum
from pyspark.sql import SparkSession

from noonmark.adapter.catalog.user_types import labels_of
from support.serve.host import DatabaseHost


class Color(enum.Enum):
    red = "red"
    green = "green"
    blue = "blue"


MADE = (
    "create type color as enum ('red', 'green', 'blue')",
    "create table paint (id int primary key, k color, ks color[] default '{green}')",
    "create table price (k color primary key, w int)",
    "insert into price values ('red', 1), ('green', 2)",
    "insert into paint values (1, 'red', '{red,blue}'), (2, 'blue', null), (4, null, '{}')",
    "insert into paint (id, k) values (3, 'green')",
)
VIEWS = {
    "counted": "select k, count(*) n, min(ks) lo, max(k) hi from paint group by k",
    "joined": "select id, k, w, k::text shown, k > 'red' more from paint join price using (k)",
    "ranked": "select id, k, rank() over (order by k desc nulls last) r, ks[1] one from paint",
    "first": "select distinct on (k > 'red') id, k from paint order by k > 'red', k desc, id",
    "few": "select id, k from paint where k in ('red', 'blue') order by k, id limit 2",
    "ends": "select min(k) lo, max(k) hi, count(distinct k) n from paint",
}


def said(connection: psycopg.Connection[Any], *texts: str) -> list[Any]:
    for text in texts:
        cursor = connection.execute(text.encode())
    return cursor.fetchall() if cursor.description is not None else []


def connected(host: DatabaseHost, user: str = "noonmark") -> psycopg.Connection[Any]:
    return psycopg.connect(host.dsn(user), autocommit=True)


def test_maintained_views_follow_labels_that_come_between(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Every view is what its query says, before a label came, after it, and after a restart."""
    host = DatabaseHost(str(tmp_path), spark)
    try:
        with connected(host) as db:
            said(db, *MADE, *(f"create materialized view {n} as {q}" for n, q in VIEWS.items()))
            said(db, "create index on paint (k)")
            check_views(db)
            said(
                db,
                "alter type color add value 'orange' after 'red'",
                "alter type color add value 'black' before 'red'",
                "insert into paint values (5, 'orange', '{orange,black}'), (6, 'black', null)",
                "insert into price values ('orange', 9)",
                "update paint set k = 'orange' where id = 1",
                "delete from paint where k = 'blue'",
            )
            check_views(db)
            assert said(db, "select * from ends") == [("black", "green", 3)]
            assert said(db, "select id from paint where k = 'orange' order by id") == [(1,), (5,)]
            assert said(db, "select id from paint where k < 'green' order by k, id") == [
                (6,), (1,), (5,)
            ]  # fmt: skip
    finally:
        host.close()
    host = DatabaseHost(str(tmp_path), spark)
    try:
        with connected(host) as db:
            check_views(db)
            said(db, "insert into paint values (7, 'black', '{red}')")
            check_views(db)
    finally:
        host.close()


def check_views(db: psycopg.Connection[Any]) -> None:
    for name, query in VIEWS.items():
        assert said(db, f"audit materialized view {name}") == [], name
        kept = sorted(said(db, f"select * from {name}"), key=repr)
        assert kept == sorted(said(db, query), key=repr), name


def test_no_label_comes_while_a_view_depends_on_which_there_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    host = DatabaseHost(str(tmp_path), spark)
    try:
        with connected(host) as db:
            said(db, *MADE, "create table texts (x text)")
            for query in (
                "select x::color from texts",
                "select '{}'::text[]::color[] || x::color as c from texts",
                "select enum_range(k) from paint",
                "select enum_last(k) from paint",
            ):
                said(db, f"create materialized view v as {query}")
                with pytest.raises(errors.FeatureNotSupported, match="reads text as the type"):
                    said(db, "alter type color add value 'orange'")
                said(db, "drop materialized view v")
            said(db, "create materialized view v as select k::text from paint where k > 'red'")
            said(db, "alter type color add value 'orange'")
            with pytest.raises(errors.DependentObjectsStillExist):
                said(db, "drop type color")
    finally:
        host.close()


def test_a_subscription_shows_labels(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path))
    try:
        with connected(host) as db:
            said(db, *MADE, "begin", "declare c cursor for subscribe (select id, k from paint)")
            rows: list[Any] = []
            while len(rows) < 4:
                rows += said(db, "fetch all c with (timeout = '5s')")
            assert sorted(row[2:] for row in rows) == [
                (1, "red"), (2, "blue"), (3, "green"), (4, None)
            ]  # fmt: skip
    finally:
        host.close()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_travel_in_both_formats(tmp_path: Path, binary: bool) -> None:
    host = DatabaseHost(str(tmp_path))
    try:
        with connected(host) as db:
            said(db, *MADE)
            info = EnumInfo.fetch(db, "color")
            assert info is not None
            assert sorted(info.labels) == ["blue", "green", "red"]
            register_enum(info, db, Color)
            cursor = db.cursor(binary=binary)
            sign = "%b" if binary else "%t"
            query = f"select k, ks from paint where k = {sign} or k = any({sign}) order by k"
            rows = cursor.execute(query.encode(), (Color.red, [Color.blue])).fetchall()
            assert rows == [
                (Color.red, [Color.red, Color.blue]), (Color.blue, None)
            ]  # fmt: skip
            form = "format binary" if binary else "format text"
            with cursor.copy(f"copy paint (id, k) to stdout ({form})".encode()) as copy:
                data = b"".join(bytes(block) for block in copy)
            said(db, "delete from paint")
            with cursor.copy(f"copy paint (id, k) from stdin ({form})".encode()) as copy:
                copy.write(data)
            assert said(db, "select id, k::text, ks::text from paint order by id") == [
                (1, "red", "{green}"), (2, "blue", "{green}"), (3, "green", "{green}"),
                (4, None, "{green}"),
            ]  # fmt: skip
            with pytest.raises(errors.InvalidTextRepresentation, match='for enum color: "mauve"'):
                cursor.execute(f"select {sign}::color".encode(), ("mauve",))
    finally:
        host.close()


def test_a_type_of_a_transaction_is_there_at_commit_or_not_at_all(tmp_path: Path) -> None:
    """Its uid and not its number is in columns: others may have made something meanwhile."""
    host = DatabaseHost(str(tmp_path))
    try:
        with connected(host) as db, connected(host) as other:
            said(db, "begin", "create type a as enum ('x')", "create table t (v a)", "rollback")
            assert said(db, "select count(*) from pg_type where typname in ('a', '_a')") == [(0,)]
            said(db, "begin", "create type a as enum ('y', 'x')")
            said(other, "create type b as enum ('x', 'y')", "create table u (v b)")
            said(db, "create table t (v a default 'y'::a check (v <> 'x'::a or true))")
            said(db, "insert into t values ('x'), (default)", "commit")
            said(db, "alter type a rename to c", "insert into t values (default)")
            query = "select v, pg_typeof(v)::text from t order by v"
            assert said(db, query) == [("y", "c"), ("y", "c"), ("x", "c")]
            kinds = {item.name: labels_of(item) for item in host.database.catalog.items("type")}
            assert kinds == {"c": ("y", "x"), "b": ("x", "y")}
            oids = said(db, "select oid, typarray from pg_type where typtype = 'e'")
            assert len({each for row in oids for each in row}) == 4
    finally:
        host.close()


def test_a_column_of_a_type_takes_usage(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path))
    try:
        with connected(host) as db:
            said(db, "create role bob login", "create schema own", "alter schema own owner to bob")
            said(db, *MADE, "revoke usage on type color from public")
            with connected(host, "bob") as bob:
                for text in (
                    "create table own.t (k color)",
                    "create table own.t (k color[])",
                ):
                    with pytest.raises(errors.InsufficientPrivilege, match="for type color"):
                        said(bob, text)
                for text in (
                    "alter type color add value 'x'",
                    "drop type color",
                    "comment on type color is 'x'",
                    "alter type color rename to x",
                    "alter type color set schema own",
                ):
                    with pytest.raises(errors.InsufficientPrivilege, match="must be owner of type"):
                        said(bob, text)
                said(db, "grant usage on type color to bob")
                said(bob, "create table own.t (k color)", "insert into own.t values ('red')")
    finally:
        host.close()


def test_sqlalchemy_reflects_the_labels_in_their_order(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path))
    engine = sa.create_engine(f"postgresql+psycopg://noonmark@{host.host}:{host.port}/noonmark")
    try:
        with connected(host) as db:
            said(db, *MADE, "alter type color add value 'orange' after 'red'")
        seen = sa.inspect(engine)
        found = {column["name"]: column["type"] for column in seen.get_columns("paint")}
        assert found["k"].enums == ["red", "orange", "green", "blue"]
        assert found["ks"].item_type.name == "color"
    finally:
        engine.dispose()
        host.close()
