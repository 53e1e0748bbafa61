# ruff: noqa: E501 - tables of texts are read by line
"""Calls of functions by PostgreSQL's own signatures: typed NULLs, plain values, and wrong types.

`scalars` calls what the product says it has, as the product says it is called; a signature that the
product does not have, or has otherwise, is seen only from the other side. Each call has one row,
and one answer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import psycopg

from support.sql.any.choices import Choices
from support.sql.any.values import TYPES, literal, untyped

#: The types of arguments that can be made, as pg_type names them.
KINDS = {
    "int4": "int4", "text": "text", "bool": "bool", "int8": "int8", "int2": "int2",
    "numeric": "numeric", "float8": "float8", "float4": "float4", "varchar": "varchar",
    "bpchar": "bpchar", "date": "date", "time": "time", "timestamp": "timestamp",
    "timestamptz": "timestamptz", "interval": "interval", "uuid": "uuid", "bytea": "bytea",
    "jsonb": "jsonb", "_int4": "int4s", "_text": "texts", "any": "int4", "anyelement": "int4",
    "anyarray": "int4s", "anynonarray": "int4", "anycompatible": "int4", "anycompatiblearray": "int4s",
    "inet": "inet", "cidr": "cidr", "macaddr": "macaddr", "bit": "bit", "varbit": "varbit",
    "int4range": "int4range", "numrange": "numrange", "daterange": "daterange", "tstzrange": "tstzrange",
    "int4multirange": "multirange", "anyrange": "int4range", "anymultirange": "multirange",
    "json": "json", "anyenum": "enum", "pg_lsn": "lsn", "xid8": "xid8", "macaddr8": "macaddr8",
    "int8range": "int8range", "tsrange": "tsrange", "nummultirange": "nummultirange",
    "datemultirange": "datemultirange", "_inet": "inets", "_int4range": "ranges",
    "anycompatiblenonarray": "int4", "anycompatiblerange": "int4range",
    "anycompatiblemultirange": "multirange",
}  # fmt: skip
#: Different every time, of the server, or with an effect.
APART = frozenset(
    ("random", "gen_random_uuid", "now", "clock_timestamp", "statement_timestamp", "timeofday",
     "transaction_timestamp", "version", "pg_sleep", "pg_sleep_for", "setseed", "nextval", "setval",
     "currval", "lastval", "repeat", "age", "pg_column_size", "pg_terminate_backend", "pg_cancel_backend", "random_normal",
     "convert_from", "set_config", "pg_advisory_lock", "query_to_xml", "lpad", "rpad")
)  # fmt: skip
#: Not by their names alone: there is one type of documents; with one argument it asks the session;
#: patterns of bytes are not supported.
_LACKING = frozenset(("timezone", "like"))
#: Noonmark has them for more types than PostgreSQL.
_WIDER = frozenset(("min", "max"))
#: They have a syntax of their own, in which another number of arguments is no call.
_SYNTAX = frozenset(("overlay", "position", "substring", "trim"))
_FOUND = """
    select p.proname, p.prokind::text, p.provariadic <> 0,
           array(select t.typname::text from unnest(p.proargtypes::oid[]) with ordinality as a(o, n)
                 join pg_type t on t.oid = a.o order by a.n)
    from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a', 'w')
      and p.provolatile <> 'v'
    order by 1, 4
"""


@dataclass(frozen=True)
class Signature:
    """A function, and the kinds of its arguments."""

    name: str
    kind: str
    variadic: bool
    arguments: tuple[str, ...]


def signatures(peer: psycopg.Connection, known: Collection[str]) -> list[Signature]:
    """Those of PostgreSQL's functions that are known by name and whose arguments can be made."""
    found = []
    for name, kind, variadic, types in peer.execute(_FOUND):
        if name not in known or name in APART | _LACKING:
            continue
        if all(each in KINDS for each in types):
            made = tuple(KINDS[each] for each in types)
            found.append(Signature(name, kind, variadic, made))
    return found


def call(choices: Choices, signature: Signature) -> str:
    """A query of one call."""
    form = choices.below(4)
    arguments = []
    for kind in signature.arguments:
        if form == 0:
            made = f"null::{TYPES[kind]}"
        elif form == 1:
            made = literal(choices, kind, hostile=False)
        elif choices.often(1, 4) and signature.name not in _WIDER:
            made = literal(choices, choices.pick(list(TYPES)), hostile=False)
        elif choices.often(1, 4):
            made = untyped(choices, kind)
        else:
            # An aggregate's zero is 0, also the sum of -0 alone: what comes and goes has no sign.
            made = literal(choices, kind, hostile=signature.kind == "f")
        arguments.append(made)
    if form == 3 and choices.often(1, 3) and signature.name not in _SYNTAX:  # too few, or too many
        arguments = arguments[:-1] if choices.often(1, 2) else [*arguments, "1"]
    text = f"{signature.name}({', '.join(arguments)})"
    if signature.kind == "w" or (signature.kind == "a" and choices.often(1, 6)):
        text += " over ()"
    return f"select {text} from single"
