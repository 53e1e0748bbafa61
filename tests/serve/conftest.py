"""A server to connect to: one without a certificate, and one with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from noonmark.serve.tls import Tls
from support.pgwire_host import CERTIFICATE, Host


@pytest.fixture
def host() -> Iterator[Host]:
    served = Host()
    yield served
    served.close()


@pytest.fixture
def tls_host() -> Iterator[Host]:
    served = Host(tls=Tls(CERTIFICATE))
    yield served
    served.close()
