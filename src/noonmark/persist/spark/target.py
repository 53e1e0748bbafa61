"""The options of the data source "noonmark", read and checked.

| option | meaning |
|---|---|
| location | the URL of the location; the relation is what is loaded, with or without its schema |
| consensus | the URL of its log, when that is not beside the data |
| as_of | milliseconds, a timestamp (in UTC without a zone) or ``latest``, which is the default |
| changes | ``true``: the columns `_time` and `_diff` beside those of the rows |
| lower, upper | the changes over ``[lower, upper)``; each may be left out |
| columns | which columns, with commas between; all by default |
| hold | of a stream: ``false`` to hold nothing (see `spark_source`) |

`lower` and `upper` are about changes, and imply them.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.errors import ConfigError, NoonmarkError
from noonmark.rows.moment import time_of

LATEST = "latest"

_KNOWN = frozenset(
    {"location", "consensus", "path", "as_of", "changes", "lower", "upper", "columns", "hold"}
)


@dataclass(frozen=True)
class Target:
    """What the options say."""

    location: str
    consensus: str | None
    name: str
    as_of: int | None
    lower: int | None
    upper: int | None
    hold: bool = True
    changes: bool = False
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: dict[str, str]) -> Target:
        """Parse, or `ConfigError`."""
        known = place_options(options, _KNOWN)
        as_of = None if known.get("as_of", LATEST) == LATEST else _time(known, "as_of")
        lower, upper = _time(known, "lower"), _time(known, "upper")
        ranged = lower is not None or upper is not None
        if ranged and "as_of" in known:
            raise ConfigError('"as_of" is one time, "lower" and "upper" are a range: give one')
        columns = [name.strip() for name in known.get("columns", "").split(",") if name.strip()]
        return cls(
            known["location"], known.get("consensus"), collection_name(known["path"]),
            as_of, lower, upper,
            hold=flag(known, "hold", default=True),
            changes=flag(known, "changes", default=ranged),
            columns=tuple(columns) or None,
        )  # fmt: skip


def place_options(options: dict[str, str], names: frozenset[str]) -> dict[str, str]:
    """The options by their names, when all are known and say where and what."""
    known = {name.lower(): value for name, value in options.items()}
    if unknown := known.keys() - names:
        raise ConfigError(f'unknown option "{min(unknown)}"', option=min(unknown))
    for name in ("location", "path"):
        if not known.get(name):
            raise ConfigError(
                f'the option "{name}" is missing',
                hint='Give .option("location", url) and the name of the relation.',
                option=name,
            )
    if known["location"].startswith("memory:"):
        raise ConfigError(
            "a location in memory cannot be read by other processes",
            hint="Use a path or an object store, or `snapshot_frame` with the client.",
        )
    return known


def collection_name(name: str) -> str:
    """How a relation is stored: the schema public is not written."""
    return name.removeprefix("public.")


def flag(options: dict[str, str], name: str, *, default: bool) -> bool:
    """An option that is true or false."""
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigError(f'option "{name}" is true or false, not "{text}"', option=name)
    return text == "true"


def _time(options: dict[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return time_of(text)
    except NoonmarkError as error:
        raise ConfigError(
            f'option "{name}" is not a time: "{text}"',
            hint="Give milliseconds since the epoch or a timestamp.",
            option=name,
        ) from error
