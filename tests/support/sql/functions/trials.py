"""Every function of the manual's families, its signatures and calls, tried on two servers.

The signatures are those of a real PostgreSQL's catalog. A trial is a call that PostgreSQL answers;
it is the same when names, types and text of the answer are, refused when Noonmark says that it has
no such type or function, and different otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from support.sql.functions.samples import TYPES, arguments, literal
from support.sql.seen import Seen, ask

FAMILIES = Path(__file__).resolve().parents[3] / "cases" / "functions" / "families.txt"
#: What both servers have before anything is tried; one that has no such thing goes without.
SETUP = (
    "create table samples (a integer primary key, b text)",
    "create table pair (a integer, b text)",
    "insert into samples values (1, 'x')",
    "create view seen as select a from samples",
    "create sequence counter",
    "create type mood as enum ('sad', 'ok', 'happy')",
)
_REFUSALS = frozenset(("0A000", "42883", "42704", "42601"))
_SIGNATURES = """
    select p.proname, p.prokind,
           array(select format_type(x, null)
                 from unnest(p.proargtypes) with ordinality u(x, n) order by n),
           p.provariadic <> 0, p.pronargdefaults
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace and n.nspname = 'pg_catalog'
    where p.proname = any(%s) order by p.proname, p.oid
"""
_OPERATORS = """
    select oprname, format_type(nullif(oprleft, 0), null), format_type(oprright, null)
    from pg_operator where oprkind in ('l', 'b') and oprnamespace = 'pg_catalog'::regnamespace
    order by oprname, oprleft, oprright
"""


@dataclass
class Named:
    """One function of the manual."""

    name: str
    family: str
    moment: bool = False
    calls: list[str] = field(default_factory=list)
    by_signature: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One call and what both said."""

    signature: str
    sql: str
    outcome: str  # same, refused, different
    why: str = ""


def families(path: Path = FAMILIES) -> tuple[dict[tuple[str, str], Named], dict[str, str]]:
    """The functions by family and name, and why a family is refused."""
    found: dict[tuple[str, str], Named] = {}
    reasons: dict[str, str] = {}
    family, text = "", path.read_text().replace(";\n ", "; ")
    for line in text.splitlines():
        if line.startswith("== "):
            family = line[3:]
        elif line.startswith("refused: "):
            reasons[family] = line.partition(": ")[2]
        elif line and not line.startswith("#"):
            moment = line.startswith("~ ")
            head, colon, calls = line.removeprefix("~ ").partition(": ")
            for name in [head] if colon else head.split():
                one = found.setdefault((family, name), Named(name, family, moment))
                one.calls += [call.strip() for call in calls.split("; ") if call.strip()]
    return found, reasons


def sign(functions: dict[tuple[str, str], Named], peer: psycopg.Connection) -> None:
    """Give the functions their signatures and calls of them."""
    by_name: dict[str, list[Named]] = {}
    for one in functions.values():
        by_name.setdefault(one.name, []).append(one)
    special = {"current_catalog", "current_role", "user", "current_date", "current_time",
               "current_timestamp", "localtime", "localtimestamp", "current_user", "session_user",
               "current_schema"}  # fmt: skip
    for name in special & by_name.keys():
        by_name[name][0].calls.append(name)
    for name, kind, types, variadic, defaults in peer.execute(_SIGNATURES, [list(by_name)]):
        one = by_name[name][0]
        if name in special or (one.calls and one.moment) or _is_only_called(one):
            continue
        if kind not in ("f", "a") or any("internal" in each or each == "cstring" for each in types):
            continue
        told = f"{name}({', '.join(types)})"
        for count in sorted({len(types), len(types) - defaults}):
            one.by_signature.setdefault(told, []).extend(
                _calls(name, kind, types[:count], variadic)
            )


def _is_only_called(one: Named) -> bool:
    """Whether the file says all there is to try: of families that ask for names of objects."""
    return one.family in (
        "Enum support functions", "Text search", "XML", "Access privileges",
        "Visibility and the catalog", "Window functions", "Sequences",
    ) and bool(one.calls)  # fmt: skip


def _calls(name: str, kind: str, types: list[str], variadic: bool) -> Iterator[str]:
    for made in arguments(types):
        if variadic and made and types[-1] not in ('"any"',):
            made[-1] = f"variadic {made[-1]}"
        if kind == "a":
            columns = ", ".join(f"c{n}" for n in range(len(made)))
            rows = f"({', '.join(made)})" if made else "(1)"
            names = columns or "c0"
            yield f"(select {name}({columns or '*'}) from (values {rows}) v({names}))"
        else:
            yield f"{name}({', '.join(made)})"


def operators(peer: psycopg.Connection) -> dict[str, dict[str, list[str]]]:
    """Calls of every operator, by its sign and the types beside it."""
    found: dict[str, dict[str, list[str]]] = {}
    for sign_, left, right in peer.execute(_OPERATORS).fetchall():
        kinds = [right] if left in (None, "-") else [left, right]
        for made in arguments(kinds):
            call = f"{sign_} {made[0]}" if len(made) == 1 else f"{made[0]} {sign_} {made[1]}"
            told = f"{sign_} {right}" if len(made) == 1 else f"{left} {sign_} {right}"
            found.setdefault(sign_, {}).setdefault(told, []).append(call)
    return found


def types() -> dict[str, list[str]]:
    """Every data type: a value of it, an array of it, and its text."""
    return {
        kind: [f"{literal(kind, 0)}", f"{literal(kind, 1)}::text", f"{literal(kind + '[]', 0)}"]
        for kind in (*TYPES, "mood")
    }


def tried(
    calls: dict[str, list[str]], ours: psycopg.Connection, peer: psycopg.Connection, *, moment: bool
) -> list[Trial]:
    """What both say to calls, by signature; those that PostgreSQL itself refuses are left out."""
    trials = []
    for signature, several in calls.items():
        for call in several:
            sql = f"select {call} as x"
            theirs = ask(peer, sql)
            if not theirs.state:
                trials.append(Trial(signature, call, *_verdict(ask(ours, sql), theirs, moment)))
    return trials


def _verdict(own: Seen, theirs: Seen, moment: bool) -> tuple[str, str]:
    if own.state:
        said = re.sub(r"\s+", " ", own.message)
        return ("refused" if own.state in _REFUSALS else "different"), said
    if moment:
        if own.types == theirs.types:
            return "same", ""
        return (
            "different",
            f"its type is {_type(own)}, not {_type(theirs)}",
        )
    mine, other = own.text(), theirs.text()
    if mine == other:
        return "same", ""
    return "different", f"{_short(mine)}, not {_short(other)}"


def _type(one: Seen) -> str:
    return one.text().partition("\n")[0].removeprefix("x ")


def _short(text: str) -> str:
    return " ".join(text.replace("x ", "", 1).split("\n"))[:60]
