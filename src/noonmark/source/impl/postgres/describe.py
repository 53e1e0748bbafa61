"""What upstream has: the tables of a publication, as a source will read them.

A `Table` is fixed when the source is made, and kept with it. Types of `noonmark.rows` are
themselves; ``json`` is read as jsonb, a domain as what it is over, and every other type (enums,
types of rows, shapes) as the text that PostgreSQL shows. A column keeps the type that it was
described with: what a later version would read otherwise stays as it is.

Identity. With REPLICA IDENTITY FULL the log has the whole old row of every change, so the source
makes updates itself. With DEFAULT (a primary key) or USING INDEX it has only the key: such a table
is keyed, and the old row comes from its own collection, as under ENVELOPE UPSERT.

Law (fate): `changed` is None for a table while every change in the log means what the description
says; an added column changes nothing. Otherwise it says which `Fate` has befallen the table.

Where it runs: driver. `read_tables` asks the catalogs; the rest is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

from noonmark.errors import ConfigError, NoonmarkError, UndefinedTable
from noonmark.rows import types as t
from noonmark.rows.pg.oid import type_of
from noonmark.rows.schema import Column, Schema
from noonmark.source.impl.postgres.session import identifier

_JSON = 114
# Types whose values may lie outside of their row, so that an update may leave them out.
_LARGE = (t.Text, t.Varchar, t.Char, t.Bytea, t.Jsonb, t.Numeric, t.Array)


class Fate(IntEnum):
    """What ends a table for good. The numbers are stored: they never change."""

    DROPPED = 1
    UNPUBLISHED = 2
    COLUMN_CHANGED = 3
    IDENTITY_CHANGED = 4
    REPUBLISHED = 5


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: what upstream calls its type, and what it is here.

    `number` is 0 for a column that is here, and gone upstream: it is NULL. `type` is spelled as
    schemas are stored (`rows.types.stored_spelling`), which is not how people spell it.
    """

    name: str
    number: int
    oid: int
    typmod: int
    type: str
    nullable: bool = True

    @property
    def sql_type(self) -> t.SqlType:
        """The type that it has here."""
        return t.parse_stored(self.type)


@dataclass(frozen=True)
class Table:
    """One published table.

    Attributes:
        oid: upstream's number for it.
        schema_name: its schema upstream.
        name: its name upstream.
        columns: the published columns, in their order.
        key: the columns of its primary key or replica identity index; () for none.
        full: whether the log has whole old rows.
        pages: its size when it was described, to cut the snapshot.
        row_filter: the publication's WHERE, as SQL.
        membership: which rows of upstream's catalogs make it a part of the publication, and which
            versions of them; "" where that was not asked yet.
        from_lsn: where a snapshot of its own stands, for one that was read later than the others
            (`restage`); None for one of the source's first snapshot.
        retired: whether nobody reads this output any more; its number stays taken.
    """

    oid: int
    schema_name: str
    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    full: bool = False
    pages: int = 0
    row_filter: str | None = None
    membership: str = ""
    from_lsn: int | None = None
    retired: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The columns of its collection."""
        return Schema(tuple(self._column(column) for column in self.columns))

    def _column(self, column: TableColumn) -> Column:
        sql_type = column.sql_type
        # A keyed row may come without its large values: they are there once it is put together.
        loose = not self.full and column.name not in self.key and isinstance(sql_type, _LARGE)
        return Column(column.name, sql_type, column.nullable or loose)

    @property
    def full_name(self) -> str:
        """The name as messages show it."""
        return f"{self.schema_name}.{self.name}"

    @property
    def sql_name(self) -> str:
        """The name as SQL takes it."""
        return f"{identifier(self.schema_name)}.{identifier(self.name)}"

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are not in the key."""
        return tuple(column.name for column in self.columns if column.name not in self.key)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


_TABLES = """
select c.oid::bigint, p.schemaname::text, p.tablename::text, c.relreplident::text,
       greatest(c.relpages, pg_relation_size(c.oid) / 8192)::bigint, to_jsonb(p),
       (select jsonb_agg(jsonb_build_object(
            'name', a.attname, 'number', a.attnum, 'oid', a.atttypid::bigint,
            'typmod', a.atttypmod, 'base', coalesce(d.base, a.atttypid::bigint),
            'base_typmod', coalesce(d.typmod, a.atttypmod), 'nullable', not a.attnotnull,
            'generated', a.attgenerated <> '',
            'key', i.indexrelid is not null) order by a.attnum)
        from pg_attribute a
        left join lateral (
            with recursive up as (
                select t.oid, t.typtype, t.typbasetype, a.atttypmod as typmod
                from pg_type t where t.oid = a.atttypid
                union all
                select b.oid, b.typtype, b.typbasetype,
                       case when u.typmod >= 0 then u.typmod else t.typtypmod end
                from up u join pg_type t on t.oid = u.oid join pg_type b on b.oid = u.typbasetype
                where u.typtype = 'd')
            select up.oid::bigint as base, up.typmod from up where up.typtype <> 'd') d on true
        left join pg_index i on i.indrelid = c.oid and a.attnum = any(i.indkey[0:i.indnkeyatts - 1])
             and case when c.relreplident = 'i' then i.indisreplident else i.indisprimary end
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
       (with above as (
            select array_agg(t.oid) as tables, array_agg(t.relnamespace) as schemas,
                   string_agg(i.xmin::text, ',' order by i.inhrelid) as links
            from pg_inherits i join pg_class t on t.oid = i.inhparent and t.relkind = 'p'
            where c.relispartition and i.inhrelid in (
                with recursive up as (
                    select c.oid as relid
                    union all select i.inhparent from up join pg_inherits i on i.inhrelid = relid)
                select relid from up))
        select string_agg(m.row, ' ' order by m.row) from (
            select format('p%%s:%%s', b.oid, b.xmin) as row from pg_publication b
            where b.pubname = p.pubname
            union all
            select format('r%%s:%%s', r.oid, r.xmin) from pg_publication_rel r
            join pg_publication b on b.oid = r.prpubid
            where b.pubname = p.pubname and r.prrelid = c.oid {more}) m) as membership
from pg_publication_tables p
join pg_namespace n on n.nspname = p.schemaname
join pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
where p.pubname = %s order by 2, 3
"""
#: By version: what else makes a table a part of a publication.
_MORE = {
    # A partition, what it is a partition of: and since when it is one, all the way up.
    130_000: """
            union all
            select format('a%%s:%%s:%%s', r.oid, r.xmin, u.links) from pg_publication_rel r
            join pg_publication b on b.oid = r.prpubid
            join above u on r.prrelid = any(u.tables)
            where b.pubname = p.pubname
              and not exists (select from pg_publication_rel o
                              where o.prpubid = b.oid and o.prrelid = c.oid)
""",
    # A table its schema, and since when it is in it; a partition that of what it is one of.
    150_000: """
            union all
            select format('n%%s:%%s:%%s', s.oid, s.xmin, d.xmin) from pg_publication_namespace s
            join pg_publication b on b.oid = s.pnpubid
            join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid
                and d.objsubid = 0 and d.refclassid = 'pg_namespace'::regclass
            where b.pubname = p.pubname and s.pnnspid = c.relnamespace
            union all
            select format('a%%s:%%s:%%s', s.oid, s.xmin, u.links) from pg_publication_namespace s
            join pg_publication b on b.oid = s.pnpubid
            join above u on s.pnnspid = any(u.schemas) and s.pnnspid <> c.relnamespace
            where b.pubname = p.pubname
""",
}


def read_tables(
    connection: Any, publication: str, wanted: Sequence[tuple[str, str]] | None = None
) -> tuple[Table, ...]:
    """The tables of a publication, all or those that are named (schema, name)."""
    found = connection.execute(
        "select 1 from pg_publication where pubname = %s", (publication,)
    ).fetchone()
    if found is None:
        raise ConfigError(
            f'publication "{publication}" does not exist upstream',
            hint=f"Run upstream: CREATE PUBLICATION {identifier(publication)} FOR ALL TABLES;",
        )
    more = [text for since, text in _MORE.items() if connection.info.server_version >= since]
    rows = connection.execute(_TABLES.format(more="".join(more)), (publication,)).fetchall()
    by_name = {(row[1], row[2]): row for row in rows}
    if wanted is not None:
        for schema_name, name in wanted:
            if (schema_name, name) not in by_name:
                raise UndefinedTable(
                    f'publication "{publication}" has no table {schema_name}.{name}',
                    hint=f"It has: {', '.join('.'.join(each) for each in by_name) or 'none'}.",
                )
        rows = [by_name[each] for each in wanted]
    return tuple(map(_table, rows))


def _table(row: tuple[Any, ...]) -> Table:
    oid, schema_name, name, identity, pages, published, attributes, membership = row
    names = published.get("attnames")
    kept = [
        each
        for each in attributes or ()
        if (not each["generated"] if names is None else each["name"] in names)
    ]
    key = tuple(each["name"] for each in kept if each["key"]) if identity != "n" else ()
    return Table(
        oid,
        schema_name,
        name,
        tuple(map(_column, kept)),
        key,
        identity == "f",
        pages,
        published.get("rowfilter"),
        membership or "",
    )


def check_identity(table: Table) -> None:
    """Refuse a table whose changes the log does not say enough about."""
    if not table.full and not table.key:
        raise ConfigError(
            f"table {table.full_name} has neither a primary key nor REPLICA IDENTITY FULL",
            detail="The log would not say which row was changed.",
            hint=f"Run upstream: ALTER TABLE {table.sql_name} REPLICA IDENTITY FULL;",
        )


def _column(each: Mapping[str, Any]) -> TableColumn:
    return TableColumn(
        each["name"],
        each["number"],
        each["oid"],
        each["typmod"],
        t.stored_spelling(_type(each["base"], each["base_typmod"])),
        each["nullable"],
    )


def _type(oid: int, typmod: int) -> t.SqlType:
    if oid == _JSON:
        return t.Jsonb()
    try:
        kind = type_of(oid, typmod)
    except NoonmarkError:
        return t.Text()
    # bpchar without a length and arrays of json are text here: sources that stand have them so.
    as_text = {
        t.Char(None): t.Text(),
        t.Array(t.Char(None)): t.Array(t.Text()),
        t.Array(t.Json()): t.Text(),
    }
    return as_text.get(kind, kind)


def changed(table: Table, now: Table | None, exists: bool) -> Fate | None:
    """What has befallen a table, given how its publication describes it now."""
    if now is None or now.oid != table.oid:
        return Fate.UNPUBLISHED if exists else Fate.DROPPED
    if table.membership and _memberships(now, table) != _memberships(table, table):
        return Fate.REPUBLISHED
    current = {column.name: column for column in now.columns}
    for column in table.columns:
        if not column.number:
            continue
        found = current.get(column.name)
        if found is None or (found.number, found.oid, found.typmod) != (
            column.number,
            column.oid,
            column.typmod,
        ):
            return Fate.COLUMN_CHANGED
    if table.full != now.full or (not table.full and table.key != now.key):
        return Fate.IDENTITY_CHANGED
    return None


def _memberships(table: Table, known: Table) -> set[str]:
    """The rows that make a table a part of the publication, of the kinds that were known of it.

    Who is published by name is not less so by a schema that comes or goes, and an earlier version
    asked neither for schemas nor for what a table is a partition of.
    """
    kinds = {row[0] for row in known.membership.split()}
    return {row for row in table.membership.split() if row[0] in kinds}


def added_columns(table: Table, now: Table) -> tuple[str, ...]:
    """The columns that a table has now and that are not read of it."""
    known = {column.name for column in table.columns}
    return tuple(column.name for column in now.columns if column.name not in known)


def explain(table: Table, fate: Fate) -> str:
    """The sentence that readers of the errors see."""
    return {
        Fate.DROPPED: f"table {table.full_name} was dropped upstream",
        Fate.UNPUBLISHED: f"table {table.full_name} was taken out of the publication",
        Fate.COLUMN_CHANGED: f"a column of table {table.full_name} was dropped, renamed or given "
        "another type upstream",
        Fate.REPUBLISHED: f"the publication of table {table.full_name} was changed: what it left "
        "out meanwhile is not known",
        Fate.IDENTITY_CHANGED: f"the replica identity of table {table.full_name} was changed",
    }[fate]
