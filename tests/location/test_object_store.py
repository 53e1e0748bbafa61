"""What an object store does wrong, and which error says so (`persist.impl.object_store`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, Determinate, Indeterminate, StorageUnfit
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.impl.object_store import ObjectStoreBlob
from noonmark.persist.impl.open import open_blob
from noonmark.persist.impl.probe import probe
from support.neighbour.servers import S3Server
from support.neighbour.stand_in_s3 import StandInS3, stand_in_s3
from support.store.doubles import UnconditionalBlob


@pytest.fixture
def server() -> Iterator[StandInS3]:
    with stand_in_s3() as running:
        yield running


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(body())  # type: ignore[arg-type]


def test_the_probe_refuses_a_double_that_ignores_the_condition() -> None:
    async def body() -> None:
        blob = MemoryBlob(SYSTEM.fresh_id())
        with pytest.raises(StorageUnfit, match=blob.url):
            await probe(UnconditionalBlob(blob))
        assert await blob.list("") == []

    run(body)


def test_the_probe_refuses_a_server_that_ignores_the_condition(server: StandInS3) -> None:
    async def body() -> None:
        blob = open_blob(server.url)
        await probe(blob)
        server.ignores_condition = True
        with pytest.raises(StorageUnfit) as caught:
            await probe(blob)
        assert "s3://bucket/prefix" in str(caught.value)
        assert "hush" not in str(caught.value)
        assert server.objects == {}

    run(body)


def test_a_lost_answer_is_indeterminate_and_the_put_was_sent_once(server: StandInS3) -> None:
    async def body() -> None:
        blob = open_blob(server.url)
        server.loses_answers = True
        with pytest.raises(Indeterminate) as caught:
            await blob.put_if_absent("log/1", b"mine")
        assert server.puts == 1
        assert "hush" not in str(caught.value)
        server.loses_answers = False
        assert await blob.get("log/1") == b"mine"
        assert not await blob.put_if_absent("log/1", b"mine")

    run(body)


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_error_on_a_conditional_put_is_indeterminate(
    server: StandInS3, status: int
) -> None:
    async def body() -> None:
        blob = open_blob(server.url)
        server.status = status
        server.code = "InternalError"
        with pytest.raises(Indeterminate):
            await blob.put_if_absent("log/1", b"")
        assert server.puts == 1

    run(body)


def test_exists_without_an_object_is_tried_again(server: StandInS3) -> None:
    """S3 answers 409 while another call on the key is under way: nobody has the key yet."""

    async def body() -> None:
        blob = open_blob(server.url)
        server.status, server.code = 409, "ConditionalRequestConflict"
        with pytest.raises(Determinate):
            await blob.put_if_absent("log/1", b"")

    run(body)


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (404, "NoSuchBucket")])
def test_forbidden_and_no_bucket_are_unfit(server: StandInS3, status: int, code: str) -> None:
    async def body() -> None:
        blob = open_blob(server.url)
        server.status, server.code = status, code
        for call in (
            lambda: blob.get("part/a"),
            lambda: blob.get_range("part/a", 0, 1),
            lambda: blob.put("part/a", b""),
            lambda: blob.put_if_absent("part/a", b""),
            lambda: blob.list("part/"),
        ):
            with pytest.raises(StorageUnfit) as caught:
                await call()
            assert caught.value.hint

    run(body)


def test_no_connection_means_that_nothing_happened() -> None:
    with stand_in_s3() as server:
        url = server.url

    async def body() -> None:
        with pytest.raises(Determinate):
            await open_blob(url).put_if_absent("log/1", b"")

    run(body)


def test_credentials_come_from_the_environment(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL without secrets opens wherever the environment has them: so executors open it."""
    full = s3_server.url(SYSTEM.fresh_id())
    bare = re.sub("&(access_key_id|secret_access_key)=[^&]*", "", full)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_access_key)

    async def body() -> None:
        assert "key" not in bare
        await open_blob(bare).put("part/a", b"a")
        assert await open_blob(full).get("part/a") == b"a"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(StorageUnfit):
            await open_blob(bare).get("part/a")

    run(body)


def test_the_secret_is_in_the_url_alone(server: StandInS3) -> None:
    blob = open_blob(server.url)
    assert blob.url == server.url
    assert "hush" not in repr(blob)
    assert "me" in repr(blob)


@pytest.mark.parametrize(
    "url",
    [
        "s3:///prefix",
        "s3://bucket/p?endpoint=http://127.0.0.1:1",
        "s3://bucket/p?no_such_option=1",
        "az://container/p",
    ],
)
def test_options_that_cannot_be(url: str) -> None:
    with pytest.raises(ConfigError):
        open_blob(url)


@pytest.mark.parametrize(
    ("url", "native"),
    [
        ("s3://bucket/a/b", "s3a://bucket/a/b/part/x"),
        ("s3://bucket", "s3a://bucket/part/x"),
        ("gs://bucket/a", "gs://bucket/a/part/x"),
        ("az://box/a?account_name=acc", "abfss://box@acc.dfs.core.windows.net/a/part/x"),
    ],
)
def test_native_urls(url: str, native: str) -> None:
    assert ObjectStoreBlob(url).native_url("part/x") == native
