"""URLs: what they open, what is refused, and that no secret is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import ConfigError
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.impl.object_store import ObjectStoreBlob
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.impl.postgres import PostgresConsensus
from noonmark.persist.impl.redact import redact

OBJECT_STORES = ("s3://b/p", "gs://b/p", "az://b/p?account_name=a")


def test_each_scheme_opens_its_store(tmp_path: Path) -> None:
    assert isinstance(open_blob("memory:x"), MemoryBlob)
    assert isinstance(open_blob(tmp_path), FileBlob)
    assert isinstance(open_blob("some/path"), FileBlob)
    for url in OBJECT_STORES:
        assert isinstance(open_blob(url), ObjectStoreBlob)
        assert isinstance(open_consensus(url), BlobConsensus)
    for scheme in ("postgres", "postgresql"):
        log = open_consensus(f"{scheme}://me@localhost/db?location=a")
        assert isinstance(log, PostgresConsensus)


def test_a_url_opens_an_equal_blob(tmp_path: Path) -> None:
    blob = open_blob(tmp_path / "a b%c")
    again = open_blob(blob.url)
    assert isinstance(blob, FileBlob)
    assert isinstance(again, FileBlob)
    assert again.root == blob.root == str(tmp_path / "a b%c")
    relative = open_blob("data")
    assert isinstance(relative, FileBlob)
    assert relative.root == os.path.join(os.getcwd(), "data")


@pytest.mark.parametrize(
    "url", ["", "memory:", "http://host/x", "file://host/x", "file:x", "kafka:x", "postgres://h/d"]
)
def test_everything_else_is_refused_by_both(url: str) -> None:
    with pytest.raises(ConfigError):
        open_blob(url)
    with pytest.raises(ConfigError):
        open_consensus(url)


def test_postgres_holds_no_objects() -> None:
    with pytest.raises(ConfigError) as caught:
        open_blob("postgres://me:hush@localhost/db?location=a")
    assert "hush" not in str(caught.value)
    assert "consensus" in str(caught.value)


@given(st.text("abcdefgh0123456789", min_size=12, max_size=20))
def test_a_secret_is_never_shown(secret: str) -> None:
    for url in (
        f"postgres://me:{secret}@host:5432/db?location=a",
        f"postgres://me@host/db?password={secret}&location=a",
        f"postgres://me@host/db?location=a&sslpassword={secret}",
        f"s3://bucket/prefix?access_key_id=me&secret_access_key={secret}",
        f"s3://bucket/prefix?session_token={secret}",
        f"gs://bucket/prefix?service_account_key={secret}",
        f"az://bucket/prefix?account_key={secret}&sas_key={secret}&client_secret={secret}",
    ):
        assert secret in url
        assert secret not in redact(url)


def test_what_is_not_secret_stays() -> None:
    for url in (
        "memory:x",
        "/some/path",
        "s3://b/p?endpoint=http://h:1&region=r",
        OBJECT_STORES[2],
    ):
        assert redact(url) == url
