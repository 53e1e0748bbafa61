"""A server to connect to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pgwire_host import Host


@pytest.fixture
def host() -> Iterator[Host]:
    served = Host()
    yield served
    served.close()
