"""A server to connect to: scripted, without a certificate and with one; and a real database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from noonmark.serve.tls import Tls
from support.serve.host import CERTIFICATE, DatabaseHost, Host


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


@pytest.fixture(scope="module")
def database_host() -> Iterator[DatabaseHost]:
    served = DatabaseHost()
    yield served
    served.close()
