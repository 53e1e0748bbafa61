"""The engines of F11: what each needs, its command, and the views that it can.

A peer lives in an environment of its own, which `peers/NAME.lock` pins; it is made when it is first
asked for. Connectors to Kafka come from Maven. An engine that cannot be had is left out by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.neighbour.kafka import connector_jars, flink_jars
from support.neighbour.tool_venv import tool_python

_LOCKS = Path(__file__).parent / "peers"
_ALL = ("sellers", "categories", "top")


class LeftOutError(Exception):
    """An engine cannot be had here."""


@dataclass(frozen=True)
class Engine:
    """One of those that are compared.

    Attributes:
        command: what starts it, before its arguments; raises LeftOutError.
        views: those that it can.
        arguments: its own, after those that all have.
    """

    name: str
    command: Callable[[], list[str]]
    views: tuple[str, ...] = _ALL
    arguments: Callable[[], list[str]] = list

    @property
    def counted(self) -> tuple[str, ...]:
        """The views whose answers say how many bids they are of."""
        return tuple(view for view in self.views if view != "top")


def _own(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"bench.nexmark.{module}"]


def _peer(name: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        try:
            python = tool_python(name, _LOCKS / f"{name}.lock")
        except pytest.fail.Exception as error:
            raise LeftOutError(f"{name} cannot be installed: {error}") from error
        return [str(python), "-m", f"bench.nexmark.engine_{name}"]

    return command


def _with_jars(option: str, find: Callable[[], list[Path]]) -> Callable[[], list[str]]:
    def arguments() -> list[str]:
        jars = find()
        if not jars:
            raise LeftOutError("its connector to Kafka cannot be had from Maven")
        return [option, *map(str, jars)]

    return arguments


ENGINES = {
    each.name: each
    for each in (
        Engine("noonmark", _own("engine_noonmark")),
        Engine("pathway", _peer("pathway")),
        Engine("flink", _peer("flink"), arguments=_with_jars("--jar", flink_jars)),
        Engine(
            "spark",
            _own("engine_spark"),
            views=("sellers", "top"),
            arguments=_with_jars("--jars", connector_jars),
        ),
    )
}
