"""System relations: the catalog and the state of the database, as tables that SQL can read.

    facts      what they are made of
    pg_*       pg_catalog, as far as PostgreSQL's clients need it
    schemas    information_schema
    own        noonmark.*: frontiers, shards, capabilities, ticks
    mz         mz_catalog and mz_internal, under Materialize's names
    functions  what the session answers

`system_items` puts them into the catalog, `system_rows` gives the rows of one of them now.
"""

from noonmark.adapter.system.relations import system_items, system_rows

__all__ = ["system_items", "system_rows"]
