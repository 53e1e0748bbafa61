"""The load generators: what SQL calls each and its options, and the class that it is.

A generator is a file of `noonmark.source.impl`, an entry here, and its name in the parser
(docs/extend/source.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from noonmark.errors import ConfigError
from noonmark.source.contract import Source


@dataclass(frozen=True)
class _Option:
    """An option: the class's name for it, and the most that one server can be asked for.

    What is least, and what fits together, is the class's to say.
    """

    field: str
    most: int = 1_000_000
    whole: bool = True

    def value(self, shown: str, given: Any) -> int | float:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ConfigError(f"{shown} takes a number")
        if self.whole and given != given // 1:
            raise ConfigError(f"{shown} takes a whole number, not {given}")
        if not -self.most <= given <= self.most:
            raise ConfigError(f"{shown} is at most {self.most}")
        return int(given) if self.whole else given


@dataclass(frozen=True)
class _Kind:
    """A generator.

    Attributes:
        module: its file in `noonmark.source.impl`, imported when it is used.
        name: its class there.
        options: its own options, as SQL calls them.
    """

    module: str
    name: str
    options: Mapping[str, _Option] = field(default_factory=dict)

    def make(self, **given: Any) -> Source:
        found = getattr(import_module(f"noonmark.source.impl.{self.module}"), self.name)
        return cast("Callable[..., Source]", found)(**given)


#: Every generator has these.
_COMMON = {
    "tick_interval": _Option("tick_ms", 10**12),
    "up_to": _Option("up_to", 10**15),
    "seed": _Option("seed", 2**63 - 1),
}
GENERATORS = {
    "counter": _Kind("counter", "Counter", {"max_cardinality": _Option("max_cardinality", 10**12)}),
    "clock": _Kind("clock", "ClockTicks"),
    "auction": _Kind(
        "auction",
        "Auction",
        {"keep": _Option("keep"), "steps_per_tick": _Option("steps_per_tick")},
    ),
    "tpch": _Kind(
        "tpch",
        "Tpch",
        {
            "scale_factor": _Option("scale_factor", whole=False),
            "orders_per_tick": _Option("orders_per_tick"),
            "updates_per_tick": _Option("updates_per_tick"),
        },
    ),
    "key value": _Kind(
        "key_value",
        "KeyValue",
        {
            "keys": _Option("keys", 10**10),
            "partitions": _Option("partitions", 10_000),
            "value_size": _Option("value_bytes"),
            "snapshot_rounds": _Option("snapshot_rounds", 1_000),
            "batch_size": _Option("batch_keys"),
        },
    ),
}


def generator(kind: str, options: Mapping[str, Any], start_ms: int) -> Source:
    """A load generator.

    Raises:
        ConfigError: an option that it does not have, or a value that cannot be.
    """
    found = GENERATORS[kind]
    names = {**_COMMON, **found.options}
    given: dict[str, Any] = {}
    for name, value in options.items():
        shown = name.replace("_", " ").upper()
        if name not in names:
            raise ConfigError(f"LOAD GENERATOR {kind.upper()} has no option {shown}")
        option = names[name]
        given[option.field] = option.value(shown, value)
    return found.make(start_ms=start_ms, **given)
