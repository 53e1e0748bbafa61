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
class _Kind:
    """A generator.

    Attributes:
        module: its file in `noonmark.source.impl`, imported when it is used.
        name: its class there.
        options: its own options: what SQL calls them, and what the class does.
    """

    module: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    def make(self, **given: Any) -> Source:
        found = getattr(import_module(f"noonmark.source.impl.{self.module}"), self.name)
        return cast("Callable[..., Source]", found)(**given)


#: Every generator has these.
_COMMON = {"tick_interval": "tick_ms", "up_to": "up_to", "seed": "seed"}
GENERATORS = {
    "counter": _Kind("counter", "Counter", {"max_cardinality": "max_cardinality"}),
    "clock": _Kind("clock", "ClockTicks"),
    "auction": _Kind("auction", "Auction", {"keep": "keep", "steps_per_tick": "steps_per_tick"}),
    "tpch": _Kind(
        "tpch",
        "Tpch",
        {
            "scale_factor": "scale_factor",
            "orders_per_tick": "orders_per_tick",
            "updates_per_tick": "updates_per_tick",
        },
    ),
    "key value": _Kind(
        "key_value",
        "KeyValue",
        {
            "keys": "keys",
            "partitions": "partitions",
            "value_size": "value_bytes",
            "snapshot_rounds": "snapshot_rounds",
            "batch_size": "batch_keys",
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
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{shown} takes a number")
        given[names[name]] = value
    return found.make(start_ms=start_ms, **given)
