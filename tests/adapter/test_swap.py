"""ALTER ... SWAP WITH: two objects exchange their names in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import noonmark
from noonmark.embedded.database import Embedded
from noonmark.errors import NoonmarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_names_change_places(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        db.execute("create table a (x int); create table b (y text); create view v as table a")
        db.execute("insert into a values (1); insert into b values ('one')")
        assert db.execute("alter table a swap with b") == "ALTER TABLE"
        assert db.sql("select y from a").rows() == [("one",)]
        assert db.sql("select x from b").rows() == [(1,)]
        # What stands on a relation goes on standing on it.
        assert db.sql("select * from v").rows() == [(1,)]
        db.execute("insert into b values (2)")
        assert db.sql("select * from v order by 1").rows() == [(1,), (2,)]
        with pytest.raises(NoonmarkError), db.transaction() as tx:
            tx.execute("alter table a swap with b; select 1 / 0")
        with db.transaction() as tx:
            tx.execute("alter table a swap with b")
            assert tx.sql("select x from a order by 1").rows() == [(1,), (2,)]
        assert db.sql("select x from a order by 1").rows() == [(1,), (2,)]
        assert db.execute("alter table a swap with a") == "ALTER TABLE"
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        assert db.sql("select y from b").rows() == [("one",)]


def test_texts_of_views_have_the_names_of_now(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        db.execute("create schema s; create table a (x int); create table b (x int)")
        db.execute('create table s."C d" (x int)')
        db.execute(
            'create view v as select a.x, q.x as y from a join s."C d" q on a.x = q.x '
            "where a.x in (select x from a) and a.x in (with a as (select 1 as x) select x from b)"
        )
        before = db.sql("select pg_get_viewdef('v'::regclass)").rows()
        db.execute("insert into a values (1); insert into b values (1)")
        db.execute('insert into s."C d" values (1)')
        assert db.sql("select * from v").rows() == [(1, 1)]
        db.execute('alter table a rename to a2; alter table s."C d" rename to c')
        ((text,),) = db.sql("select pg_get_viewdef('v'::regclass)").rows()
        assert text != before[0][0]
        ((_, shown),) = db.sql("show create view v").rows()
        # The text means the same: a view that is made of it gives the same rows.
        made = shown.replace("noonmark.public.v", "w")
        db.execute(made)
        assert db.sql("select * from w").rows() == [(1, 1)]
        db.execute("alter table a2 swap with b; delete from a2")
        assert db.sql("select * from v").rows() == db.sql("select * from w").rows() == []
        ((_, shown),) = db.sql("show create view w").rows()
        db.execute(shown.replace("noonmark.public.w", "z"))
        db.execute("insert into a2 values (1)")
        assert db.sql("select * from z").rows() == db.sql("select * from v").rows() == [(1, 1)]


def test_a_name_that_ends_like_the_old_one_is_another(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        db.execute("create table xa (x int); create view v as select x from xa")
        db.execute("alter table xa rename to a")
        ((_, shown),) = db.sql("show create view v").rows()
        assert shown.endswith("AS select x from a AS xa")
        ((shown,),) = db.sql("select definition from pg_views where viewname = 'v'").rows()
        assert shown.rstrip(";").endswith("select x from a AS xa")


def test_what_cannot_be_swapped_is_refused(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        db.execute("create table a (x int); create view v as table a; create schema s")
        db.execute("create table s.b (x int)")
        for statement, state in (
            ("alter table a swap with nothing", "42P01"),
            ("alter table nothing swap with a", "42P01"),
            ("alter table a swap with b", "42P01"),  # it is in another schema
            ("alter table a swap with v", "42809"),
        ):
            with pytest.raises(NoonmarkError) as raised:
                db.execute(statement)
            assert raised.value.sqlstate == state, statement
        with pytest.raises(NoonmarkError) as raised:
            db.execute("alter materialized view v swap with v")
        assert raised.value.hint == "Use ALTER VIEW."


@pytest.mark.spark
def test_materialized_views_go_on_under_each_others_names(
    tmp_path: Path, spark: SparkSession
) -> None:
    assert spark
    with noonmark.open(tmp_path) as db:
        db.execute("create table t (k int, n int)")
        db.execute("insert into t values (1, 10), (1, 20), (2, 5)")
        db.execute("create materialized view a as select k, sum(n) as n from t group by k")
        db.execute("create materialized view b as select k, max(n) as n from t group by k")
        db.execute("create materialized view over_a as select sum(n) as n from a")
        assert db.sql("select * from over_a").rows() == [(35,)]
        assert db.execute("alter materialized view a swap with b") == "ALTER MATERIALIZED VIEW"
        assert db.sql("select * from a order by k").rows() == [(1, 20), (2, 5)]
        assert db.sql("select * from b order by k").rows() == [(1, 30), (2, 5)]
        db.execute("insert into t values (2, 7)")
        assert db.sql("select * from a order by k").rows() == [(1, 20), (2, 7)]
        assert db.sql("select * from b order by k").rows() == [(1, 30), (2, 12)]
        assert db.sql("select * from over_a").rows() == [(42,)]
        for name in ("a", "b", "over_a"):
            assert db.sql(f"audit materialized view {name}").rows() == []
        db.execute("drop materialized view a")
    with noonmark.open(tmp_path) as db:
        db.execute("insert into t values (3, 1)")
        assert db.sql("select * from b order by k").rows() == [(1, 30), (2, 12), (3, 1)]
        assert db.sql("select * from over_a").rows() == [(43,)]
