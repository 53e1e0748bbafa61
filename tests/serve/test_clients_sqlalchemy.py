"""SQLAlchemy: tables, the ORM, reflection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from support.serve.host import DatabaseHost


class Base(DeclarativeBase):
    """The tables of this test."""


class Good(Base):
    """A table of three columns."""

    __tablename__ = "sa_goods"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    price: Mapped[float | None]


class Author(Base):
    """Keys that the server gives, and a unique column."""

    __tablename__ = "sa_authors"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


class Book(Base):
    """Refers to its author."""

    __tablename__ = "sa_books"
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("sa_authors.id"))
    title: Mapped[str]


@pytest.fixture
def engine(database_host: DatabaseHost) -> Iterator[sa.Engine]:
    place = f"{database_host.host}:{database_host.port}"
    made = sa.create_engine(f"postgresql+psycopg://noonmark@{place}/noonmark")
    Base.metadata.create_all(made)
    yield made
    Base.metadata.drop_all(made)
    assert not sa.inspect(made).has_table("sa_goods")
    made.dispose()


def test_objects_there_and_back(engine: sa.Engine) -> None:
    with Session(engine) as session:
        session.add_all([Good(id=1, name="lamp", price=2.5), Good(id=2, name="desk", price=None)])
        session.commit()
        lamps = session.scalars(sa.select(Good).where(Good.name.like("l%"))).all()
        assert [(good.id, good.price) for good in lamps] == [(1, 2.5)]
        session.commit()  # a transaction that has read does not write: see docs/consistency.md
        session.execute(sa.update(Good).where(Good.id == 2).values(price=7))
        session.commit()
        session.execute(sa.delete(Good).where(Good.id == 1))
        session.commit()
        found = session.execute(sa.select(sa.func.count(), sa.func.sum(Good.price))).one()
        assert tuple(found) == (1, 7.0)
    with engine.connect() as connection:
        text = sa.text("select name from sa_goods where id = :id")
        assert connection.execute(text, {"id": 2}).scalar_one() == "desk"


def test_keys_of_the_server_and_constraints(engine: sa.Engine) -> None:
    with Session(engine) as session:
        ada, bob = Author(name="ada"), Author(name="bob")
        session.add_all([ada, bob])
        session.flush()
        session.add_all([Book(author_id=ada.id, title=f"t{at}") for at in range(3)])
        session.commit()
        assert session.execute(sa.select(sa.func.count(sa.distinct(Book.id)))).scalar_one() == 3
    refused = {Author(name="ada"): "sa_authors_name", Book(author_id=99, title="?"): "author_id_fk"}
    for wrong, name in refused.items():
        with Session(engine) as session:
            session.add(wrong)
            with pytest.raises(sa.exc.IntegrityError, match=name):
                session.commit()
    about = sa.inspect(engine)
    (foreign,) = about.get_foreign_keys("sa_books")
    assert (foreign["constrained_columns"], foreign["referred_table"]) == (
        ["author_id"],
        "sa_authors",
    )
    (unique,) = about.get_unique_constraints("sa_authors")
    assert (unique["name"], unique["column_names"]) == ("sa_authors_name_key", ["name"])


def test_reflection(engine: sa.Engine) -> None:
    about = sa.inspect(engine)
    assert "sa_goods" in about.get_table_names()
    columns = [(c["name"], str(c["type"]), c["nullable"]) for c in about.get_columns("sa_goods")]
    assert columns == [
        ("id", "INTEGER", False),
        ("name", "VARCHAR", False),
        ("price", "DOUBLE PRECISION", True),
    ]
    assert about.get_pk_constraint("sa_goods")["constrained_columns"] == ["id"]
    assert about.get_foreign_keys("sa_goods") == []
    mirrored = sa.MetaData()
    mirrored.reflect(engine, only=["sa_goods"])
    assert mirrored.tables["sa_goods"].columns.keys() == ["id", "name", "price"]


def test_reflection_of_indexes(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path / "location"))
    made = sa.create_engine(f"postgresql+psycopg://noonmark@{host.host}:{host.port}/noonmark")
    try:
        with made.begin() as connection:
            connection.execute(sa.text("create table t (a int primary key, b text, c int)"))
            connection.execute(sa.text("create index t_c_b on t (c, b)"))
        (index,) = sa.inspect(made).get_indexes("t")
        assert (index["name"], index["column_names"]) == ("t_c_b", ["c", "b"])
        everything = sa.MetaData()
        everything.reflect(made)
        assert [each.name for each in everything.tables["t"].indexes] == ["t_c_b"]
        vectors = "select indkey, indoption, indclass from pg_index where not indisprimary"
        with made.connect() as connection:
            assert connection.execute(sa.text(vectors)).one() == ("3 2", "0 0", "0 0")
    finally:
        made.dispose()
        host.close()
