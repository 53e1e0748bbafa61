"""FROM KAFKA: the records of one topic, raw: a format decodes them, an envelope makes updates.

`client` talks to brokers, `source` is the source itself, `setup` makes one.

Names are imported when they are first asked for: a server starts without Kafka's client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noonmark.source.impl.kafka.setup import StartFrom, create, renew, validate
    from noonmark.source.impl.kafka.source import Kafka

_SETUP = ("StartFrom", "create", "renew", "validate")
_PLACES = {"Kafka": "source", **dict.fromkeys(_SETUP, "setup")}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


__all__ = ["Kafka", "StartFrom", "create", "renew", "validate"]
