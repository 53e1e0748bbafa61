"""The variables of a session: which there are, what they take, what they are at the start.

Law (validated): a variable of `VARIABLES` only ever gets a value that its check takes. A variable
with a dot in its name is the client's own and takes any text, as in PostgreSQL.

The time zone is UTC and dates are written as ISO 8601: an answer is the same for every session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.catalog import SEARCH_PATH
from noonmark.adapter.catalog.item import DATABASE, TEMPORARY_PREFIX
from noonmark.adapter.timestamp.choice import ISOLATION, STRICT
from noonmark.adapter.worker.limits import SETTINGS
from noonmark.errors import NoonmarkError, ReadOnly, UndefinedObject, UsageError
from noonmark.sql.statement.options import CLUSTER, span_ms

if TYPE_CHECKING:
    from noonmark.adapter.contract import Notice
    from noonmark.adapter.session.session import AdapterSession

Check = Callable[[str], str]


#: What PostgreSQL's clients expect to be told at the start.
REPORTED = {
    "application_name": "",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "integer_datetimes": "on",
    "IntervalStyle": "postgres",
    "is_superuser": "on",
    "server_encoding": "UTF8",
    "server_version": "15.0 (Noonmark)",
    "standard_conforming_strings": "on",
    "TimeZone": "UTC",
}


class _Refused(Exception):
    """The value cannot be; says what can."""


@dataclass(frozen=True)
class Variable:
    """A variable under the name that clients know it by. Without a check it cannot be set."""

    name: str
    default: str
    check: Check | None
    about: str = ""


def _text(value: str) -> str:
    return value


def _boolean(value: str) -> str:
    word = value.lower()
    if word in ("on", "true", "yes", "1", "t", "y"):
        return "on"
    if word in ("off", "false", "no", "0", "f", "n"):
        return "off"
    raise _Refused("It is on or off.")


def _one_of(*words: str) -> Check:
    def check(value: str) -> str:
        found = next((word for word in words if word.lower() == value.lower()), None)
        if found is None:
            raise _Refused(f"It is one of {', '.join(words)}.")
        return found

    return check


def _span(value: str) -> str:
    """Milliseconds: a number of them, or a text with a unit."""
    if value.lstrip("-").isdigit():
        milliseconds = int(value)
    else:
        try:
            milliseconds = span_ms(value, 1)
        except NoonmarkError:
            raise _Refused("It is a time such as 500, '5s' or '1min'.") from None
    if not 0 <= milliseconds <= 2_147_483_647:
        raise _Refused("It is at least 0 and at most 2147483647 milliseconds.")
    return shown_span(milliseconds)


#: PostgreSQL's units of time, the largest first, in milliseconds.
_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}


def shown_span(milliseconds: int) -> str:
    """A time as SHOW has it: in the largest unit in which it is whole."""
    unit, size = next((u, size) for u, size in _UNITS.items() if milliseconds % size == 0)
    return f"{milliseconds // size}{unit}" if milliseconds else "0"


def span_of(text: str) -> int:
    """The milliseconds of such a time."""
    number = text.rstrip("adhimns")
    return int(number) * _UNITS.get(text[len(number) :], 1)


def _integer(low: int, high: int) -> Check:
    def check(value: str) -> str:
        if not value.lstrip("-").isdigit() or not low <= int(value) <= high:
            raise _Refused(f"It is a whole number from {low} to {high}.")
        return str(int(value))

    return check


def _isolation(value: str) -> str:
    if value.lower() not in ISOLATION:
        raise _Refused(f"It is one of {', '.join(ISOLATION)}.")
    return ISOLATION[value.lower()]


def _time_zone(value: str) -> str:
    if value.lower() in ("utc", "gmt", "etc/utc", "z", "0", "+00:00", "local", "universal"):
        return "UTC"
    raise _Refused("It is UTC: an answer is the same for every session. Use AT TIME ZONE.")


def _encoding(value: str) -> str:
    if value.lower().replace("-", "") in ("utf8", "unicode", "auto"):
        return "UTF8"
    raise _Refused("It is UTF8.")


def _date_style(value: str) -> str:
    words = {word.strip().lower() for word in value.split(",")}
    if words <= {"iso", "mdy", "dmy", "ymd", "default", "us", "european"}:
        return "ISO, MDY"
    raise _Refused("It is ISO, MDY.")


def _encoded_path(value: str) -> str:
    return value or '""'


#: What client_min_messages may be, the least first.
_MESSAGES = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice")


def _made() -> dict[str, Variable]:
    found = [
        Variable("application_name", "", _text),
        Variable("bytea_output", "hex", _one_of("hex")),
        Variable("client_encoding", "UTF8", _encoding),
        Variable("client_min_messages", "notice", _one_of(*_MESSAGES, "warning", "error")),
        Variable("cluster", CLUSTER, _one_of(CLUSTER), "There is one cluster."),
        Variable("database", DATABASE, _one_of(DATABASE), "There is one database."),
        Variable("DateStyle", "ISO, MDY", _date_style),
        Variable("default_transaction_isolation", STRICT, _isolation),
        Variable("default_transaction_read_only", "off", _boolean),
        Variable("extra_float_digits", "1", _integer(-15, 3)),
        Variable("idle_in_transaction_session_timeout", "0", _span),
        Variable("integer_datetimes", "on", None),
        Variable("IntervalStyle", "postgres", _one_of("postgres")),
        Variable("is_superuser", "on", None),
        Variable("lock_timeout", "0", _span),
        Variable("max_identifier_length", "255", None),
        Variable("max_index_keys", "32", None),
        Variable("planning_timeout", "10s", None, "How long a statement may be planned."),
        Variable("real_time_recency", "off", _boolean, "Reads see all that upstream had."),
        Variable("real_time_recency_timeout", "10s", _span),
        Variable("role", "none", None, "SET ROLE changes it."),
        Variable("search_path", "public", _encoded_path),
        Variable("server_encoding", "UTF8", None),
        Variable("server_version", "15.0 (Noonmark)", None),
        Variable("server_version_num", "150000", None),
        Variable("session_authorization", "", None, "SET SESSION AUTHORIZATION changes it."),
        Variable("standard_conforming_strings", "on", _one_of("on")),
        Variable("statement_timeout", "0", _span, "How long a statement may take."),
        Variable("TimeZone", "UTC", _time_zone),
        Variable("transaction_isolation", STRICT, _isolation),
        Variable("transaction_read_only", "off", _boolean),
        *(Variable(each.name, "", None, each.summary) for each in SETTINGS),
        *(Variable(name, default, _text, "It has no effect.") for name, default in _TAKEN),
    ]
    return {variable.name.lower(): variable for variable in found}


#: What clients set and what means nothing here.
_TAKEN = (
    ("check_function_bodies", "on"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("escape_string_warning", "on"),
    ("jit", "off"),
    ("row_security", "on"),
    ("synchronize_seqscans", "on"),
    ("synchronous_commit", "on"),
    ("work_mem", "4MB"),
    ("xmloption", "content"),
)
VARIABLES = _made()


def known(name: str) -> Variable:
    """The variable of that name.

    Raises:
        UndefinedObject: there is none.
    """
    found = VARIABLES.get(name.lower())
    if found is not None:
        return found
    if "." in name:
        return Variable(name.lower(), "", _text)
    raise UndefinedObject(f'unrecognized configuration parameter "{name}"')


def checked(name: str, value: str | Sequence[str]) -> tuple[str, str]:
    """The variable's own name, and the value as it is kept.

    Raises:
        UsageError: the variable does not take it; the hint says what it takes.
        ReadOnly: it cannot be set.
    """
    variable = known(name)
    text = value if isinstance(value, str) else ", ".join(value)
    if variable.check is None:
        raise ReadOnly(f'parameter "{variable.name}" cannot be changed')
    try:
        return variable.name, variable.check(text)
    except _Refused as refused:
        raise UsageError(
            f'invalid value for parameter "{variable.name}": "{text}"', hint=str(refused)
        ) from None


def value_of(variables: Mapping[str, str], name: str, missing_ok: bool = False) -> str | None:
    """What a variable is now.

    Raises:
        UndefinedObject: there is none, and that is not ok.
    """
    if "." in name and name.lower() in variables:
        return variables[name.lower()]
    found = VARIABLES.get(name.lower())
    if found is None and not missing_ok:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return None if found is None else variables.get(found.name, found.default)


def at_start(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a new session: what a client asks for and cannot have is left out."""
    variables: dict[str, str] = {}
    for name, value in given.items():
        try:
            own, kept = checked(name, value)
        except NoonmarkError:
            continue  # a driver sends its machine's settings unasked; it is told what holds
        variables[own] = kept
    return variables


def search_path(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Where unqualified names are looked for: the session's schemas, then the system's."""
    text = variables.get("search_path")
    if text is None:
        return SEARCH_PATH
    asked = [part.strip().strip('"') for part in text.split(",")]
    own = [part for part in asked if part and part != "$user"]
    return tuple(dict.fromkeys((*own, *(each for each in SEARCH_PATH if each != "public"))))


def temporary_schema(session: AdapterSession) -> str:
    """The schema of the session's temporary objects, whether it is there yet or not."""
    return f"{TEMPORARY_PREFIX}{session.id}"


def path_of(session: AdapterSession) -> tuple[str, ...]:
    """Where the session looks names up: first among its temporary objects."""
    path, own = search_path(session.variables), temporary_schema(session)
    return (own, *path) if session.catalog.has_schema(own) else path


def wanted_notices(variables: Mapping[str, str], notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """The notices that are not below client_min_messages."""
    order = (*_MESSAGES, "warning", "error")
    least = order.index(variables.get("client_min_messages", "notice"))
    return tuple(each for each in notices if order.index(each.severity.lower()) >= least)
