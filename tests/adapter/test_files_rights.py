"""FROM FILES: who may have the server read its files, and which."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError
from noonmark.persist.client import Options
from support.serve.reading import Conversation, NoSpark, connect

Test = Callable[[Database, Conversation, Conversation], Coroutine[Any, Any, None]]


def with_people(test: Test, data: str = "", roots: str = "") -> None:
    """A test with a superuser and mallory, who has a schema of her own."""

    async def go() -> None:
        place = data or f"memory:{SYSTEM.fresh_id()}"
        spark: Any = NoSpark()
        opened = await Database.open(
            place, session=spark, options=Options(notify_host=None), files_roots=roots
        )
        try:
            root = await connect(opened)
            await root.ask("create role mallory login")
            await root.ask("create schema hers")
            await root.ask("grant all on schema hers to mallory")
            mallory = Conversation(await opened.connect("mallory", "noonmark", {}, "test"))
            async with asyncio.timeout(60):
                await test(opened, root, mallory)
        finally:
            await opened.close()

    asyncio.run(go())


async def denied(client: Conversation, pattern: str) -> NoonmarkError:
    with pytest.raises(NoonmarkError) as caught:
        await client.ask(f"create source hers.x from files '{pattern}' format text")
    assert caught.value.sqlstate == "42501", caught.value
    return caught.value


def test_members_read_below_the_roots(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("hello\n")

    async def test(_: Database, root: Conversation, mallory: Conversation) -> None:
        good = f"{tmp_path}/in/*.txt"
        assert "pg_read_server_files" in str(await denied(mallory, good))
        await root.ask("grant pg_read_server_files to mallory")
        for pattern in ("/etc/passwd", f"{tmp_path}/in/../../*", "s3://bucket/x"):
            assert "may not be read here" in (await denied(mallory, pattern)).message
        await mallory.ask(f"create source hers.f from files '{good}' format text")
        assert [row[0] for row in await mallory.ask("select * from hers.f")] == ["hello"]
        assert (
            "may not be read" in (await denied(root, "/etc/passwd")).message
        )  # the list is for all

    with_people(test, roots=f"{tmp_path}/in")


def test_without_roots_superusers_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")

    async def test(_: Database, root: Conversation, mallory: Conversation) -> None:
        await root.ask("grant pg_read_server_files to mallory")
        assert "operator" in (await denied(mallory, f"{tmp_path}/a.txt")).message
        await root.ask(f"create source f from files '{tmp_path}/a.txt' format text")
        assert [row[0] for row in await root.ask("select * from f")] == ["hello"]

    with_people(test)


def test_the_location_is_read_by_nobody(tmp_path: Path) -> None:
    async def test(_: Database, root: Conversation, __: Conversation) -> None:
        for pattern in (f"{tmp_path}/data", f"{tmp_path}/data/**", f"file://{tmp_path}/data/x"):
            assert "its own" in str((await denied(root, pattern)).detail)

    with_people(test, data=str(tmp_path / "data"))
