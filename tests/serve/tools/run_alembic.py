"""Alembic: two revisions that it finds itself by comparing models with the server, up and down."""

import json
import sys
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

url, folder = sys.argv[1:]
ENV = """
from alembic import context

def run(connection):
    context.configure(connection=connection, target_metadata=context.config.attributes["models"],
                      compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()

with context.config.attributes["engine"].connect() as connection:
    run(connection)
    connection.commit()
"""


def first() -> sa.MetaData:
    made = sa.MetaData()
    sa.Table(
        "author", made,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(50), nullable=False, unique=True),
        sa.Column("born", sa.Date),
        sa.CheckConstraint("name <> ''", name="named"),
    )  # fmt: skip
    sa.Table(
        "book", made,
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("author_id", sa.ForeignKey("author.id", ondelete="CASCADE"), nullable=False),
        sa.Column("title", sa.Text, nullable=False, index=True),
        sa.Column("price", sa.Numeric(10, 2), server_default="0"),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("more", sa.dialects.postgresql.JSONB),
    )  # fmt: skip
    return made


def second() -> sa.MetaData:
    made = first()
    author, book = made.tables["author"], made.tables["book"]
    author.append_column(sa.Column("email", sa.String(100)))
    author.append_constraint(sa.UniqueConstraint("email", "born", name="reachable"))
    book.append_column(sa.Column("pages", sa.Integer, server_default="1", nullable=False))
    book.c.title.type = sa.String(200)
    book._columns.remove(book.c.more)
    sa.Table(
        "review", made,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("book_id", sa.ForeignKey("book.id", ondelete="SET NULL")),
        sa.Column("stars", sa.SmallInteger, nullable=False),
        sa.Index("by_book", "book_id", "stars"),
    )  # fmt: skip
    return made


engine = sa.create_engine(url)
place = Path(folder)
config = Config(f"{folder}.ini")
config.set_main_option("script_location", str(place))
command.init(config, str(place), template="generic")
(place / "env.py").write_text(ENV)
config.attributes["engine"] = engine
told: dict[str, object] = {}


def steps(models: sa.MetaData) -> list[str]:
    """What Alembic would do, as it says it."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        found = compare_metadata(context, models)
    return sorted(str(each[0] if isinstance(each, tuple) else each[0][0]) for each in found)


def tables() -> list[str]:
    return sorted(sa.inspect(engine).get_table_names())


for number, models in enumerate((first(), second()), 1):
    config.attributes["models"] = models
    told[f"steps {number}"] = steps(models)
    command.revision(config, f"revision {number}", autogenerate=True, rev_id=str(number))
    command.upgrade(config, "head")
    told[f"left {number}"] = steps(models)
    told[f"tables {number}"] = tables()
    if number == 1:
        with engine.begin() as connection:
            connection.execute(sa.text("insert into author (name) values ('ada'), ('bob')"))
            connection.execute(sa.text("insert into book (author_id, title) values (1, 'noon')"))
with engine.begin() as connection:
    connection.execute(sa.text("insert into review (book_id, stars) values (1, 5)"))
    connection.execute(sa.text("delete from author where id = 1"))
    told["rows"] = [
        [list(map(str, row)) for row in connection.execute(sa.text(text))]
        for text in ("select id, name, email from author", "select id, pages from book",
                     "select * from review")
    ]  # fmt: skip
command.downgrade(config, "-1")
told["down"] = [tables(), steps(first())]
command.downgrade(config, "base")
told["base"] = tables()
command.upgrade(config, "head")
told["again"] = [tables(), steps(second())]
print("\n" + json.dumps(told))
