"""The columns of pg_catalog and information_schema: a client is told of PostgreSQL's types.

Drivers decode by the type: an array of names is a text to one that does not know ``name[]``.
"""

from __future__ import annotations

import psycopg

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost

_COLUMNS = """
    select n.nspname || '.' || c.relname || '.' || a.attname, format_type(
        coalesce(nullif(t.typbasetype, 0), t.oid), null)
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    join pg_namespace n on n.oid = c.relnamespace join pg_type t on t.oid = a.atttypid
    where n.nspname in ('pg_catalog', 'information_schema')
"""
#: What only PostgreSQL's catalog has: texts and numbers with a type of their own.
_OF_THE_CATALOG = frozenset(
    ("oid", "name", '"char"', "xid", "regproc", "regtype", "pg_node_tree", "int2vector",
     "oidvector", "oid[]", "name[]", '"char"[]', "aclitem[]", "regtype[]")
)  # fmt: skip


def test_columns_of_the_catalog_have_the_types_that_postgresql_tells(
    postgres_server: PostgresServer,
) -> None:
    host = DatabaseHost()
    found = []
    for dsn in (host.dsn("noonmark"), postgres_server.dsn):
        with psycopg.connect(dsn) as connection:
            found.append(dict(connection.execute(_COLUMNS).fetchall()))
    host.close()
    ours, theirs = found
    both = ours.keys() & theirs.keys()
    assert len(both) > 500, "both have a catalog"
    wrong = {
        name: (ours[name], theirs[name])
        for name in both
        if theirs[name] in _OF_THE_CATALOG and ours[name] != theirs[name]
    }
    assert wrong == {}
