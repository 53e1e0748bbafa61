"""Places: fresh, empty storage locations of every kind, for the conformance suites.

A place is a URL that nothing was stored under. `blob_place` runs a test on every kind of Blob,
`consensus_place` on every kind of Consensus; a new store is one line in the tuples below.
`shared_blob_place` and `shared_consensus_place` leave out memory, which no other process sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from noonmark.clock import SYSTEM
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.location import Blob, Consensus

BLOBS = ("memory", "files", "s3")
CONSENSUSES = (*BLOBS, "postgres")

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """One empty location."""

    kind: str
    url: str

    # The S3 server of the tests lets a loser of a race wait for whole seconds.
    @property
    def racers(self) -> int:
        return 3 if self.kind == "s3" else 8

    @property
    def rounds(self) -> int:
        return 4 if self.kind == "s3" else 30

    def with_blob(self, body: Callable[[Blob], Awaitable[T]]) -> T:
        """Run `body` on a handle of its own, in an event loop of its own."""

        async def run() -> T:
            blob = open_blob(self.url)
            try:
                return await body(blob)
            finally:
                await blob.close()

        return asyncio.run(run())

    def with_consensus(self, body: Callable[[Consensus], Awaitable[T]]) -> T:
        """Run `body` on a handle of its own, in an event loop of its own."""

        async def run() -> T:
            consensus = open_consensus(self.url)
            try:
                return await body(consensus)
            finally:
                await consensus.close()

        return asyncio.run(run())


@pytest.fixture(params=BLOBS)
def blob_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=CONSENSUSES)
def consensus_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=[kind for kind in BLOBS if kind != "memory"])
def shared_blob_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return _place(request.param, request, tmp_path)


@pytest.fixture(params=[kind for kind in CONSENSUSES if kind != "memory"])
def shared_consensus_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return _place(request.param, request, tmp_path)


def _place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    name = SYSTEM.fresh_id()
    if kind == "memory":
        return Place(kind, f"memory:{name}")
    if kind == "files":
        return Place(kind, str(tmp_path / "data"))
    if kind == "s3":
        return Place(kind, request.getfixturevalue("s3_server").url(name))
    return Place(kind, request.getfixturevalue("postgres_server").consensus_url(name))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Places on a server carry the marker `server`, as every test that asks for one by name."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        kinds = {kind for name, kind in parameters.items() if name.endswith("_place")}
        if kinds & {"s3", "postgres"}:
            item.add_marker(pytest.mark.server)
