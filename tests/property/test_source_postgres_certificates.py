"""Certificates of a PostgreSQL connection are texts in SQL, and private files for libpq."""

from __future__ import annotations

import stat
from pathlib import Path

from psycopg import conninfo

from noonmark.source.impl.postgres.certificates import with_files
from noonmark.source.impl.postgres.session import dsn_of

PEM = (Path(__file__).parents[1] / "support" / "serve" / "pgwire_certificate.pem").read_text()


def test_texts_become_files_that_nobody_else_reads() -> None:
    url = conninfo.make_conninfo("", host="db", sslmode="verify-full", sslkey=PEM, sslrootcert=PEM)
    found = conninfo.conninfo_to_dict(dsn_of(url))
    key = Path(str(found["sslkey"]))
    assert key.read_text() == PEM
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert found["sslrootcert"] == str(key)
    assert (found["host"], found["sslmode"]) == ("db", "verify-full")
    assert conninfo.conninfo_to_dict(dsn_of(url))["sslkey"] == str(key)


def test_files_stay_files() -> None:
    for url in ("host=db sslrootcert=/etc/ca.pem", "postgresql://me@db/shop?sslrootcert=system"):
        assert with_files(url) == url
