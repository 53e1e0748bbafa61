"""What every Blob promises (`noonmark.persist.location.Blob`), on every kind of store."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.errors import InvalidValue
from noonmark.persist.impl.open import open_blob
from noonmark.persist.impl.probe import probe
from noonmark.persist.location import Blob, BlobEntry
from support.kill.racers import Race, entry_of, put_all
from support.store.places import Place

FIVE_MIB = bytes(range(256)) * (5 * 4096) + b"tail"


def test_what_was_put_is_got_whole_and_by_range(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        await blob.put("part/a", b"0123456789")
        assert await blob.get("part/a") == b"0123456789"
        assert await blob.get_range("part/a", 0, 1) == b"0"
        assert await blob.get_range("part/a", 3, 4) == b"3456"
        assert await blob.get_range("part/a", 8, 100) == b"89"
        assert await blob.get_range("part/a", 10, 1) == b""
        assert await blob.get_range("part/a", 99, 5) == b""
        assert await blob.get_range("part/a", 5, 0) == b""

    blob_place.with_blob(body)


def test_what_was_never_put_is_none(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        assert await blob.get("part/none") is None
        assert await blob.get_range("part/none", 0, 10) is None
        assert await blob.get_range("part/none", 0, 0) is None
        assert await blob.list("") == []
        await blob.put("part/a", b"a")
        assert await blob.get("part/none") is None
        assert await blob.get("part/a/below") is None
        assert await blob.get("part") is None

    blob_place.with_blob(body)


def test_empty_and_large_objects(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        await blob.put("part/empty", b"")
        assert await blob.get("part/empty") == b""
        assert await blob.get_range("part/empty", 0, 1) == b""
        await blob.put("part/large", FIVE_MIB)
        assert await blob.get("part/large") == FIVE_MIB
        assert await blob.get_range("part/large", 5 << 20, 100) == b"tail"
        assert await blob.get_range("part/large", 1000, 1 << 20) == FIVE_MIB[1000:][: 1 << 20]
        assert await blob.put_if_absent("part/large-too", FIVE_MIB)
        assert not await blob.put_if_absent("part/large-too", b"")
        assert await blob.get("part/large-too") == FIVE_MIB
        listed = await blob.list("part/")
        assert [entry.bytes for entry in listed] == [0, len(FIVE_MIB), len(FIVE_MIB)]

    blob_place.with_blob(body)


def test_put_again_with_the_same_bytes_is_no_error(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        await blob.put("part/a", b"same")
        await blob.put("part/a", b"same")
        assert await blob.get("part/a") == b"same"
        assert await blob.list("part/") == [BlobEntry("part/a", 4)]

    blob_place.with_blob(body)


def test_put_if_absent_refuses_what_exists_and_changes_nothing(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        assert await blob.put_if_absent("log/1", b"first")
        assert not await blob.put_if_absent("log/1", b"second")
        assert not await blob.put_if_absent("log/1", b"first")
        assert await blob.get("log/1") == b"first"
        await blob.delete("log/1")
        assert await blob.put_if_absent("log/1", b"third")
        assert await blob.get("log/1") == b"third"

    blob_place.with_blob(body)


def test_a_listing_is_by_prefix_and_in_key_order(blob_place: Place) -> None:
    keys = [
        "part/b/2",
        "part/a",
        "part/b/1",
        "part/ab",
        "parts/z",
        "p",
        "log/1",
        "part/b-1",
        "=._-",
    ]

    async def body(blob: Blob) -> None:
        for key in keys:
            await blob.put(key, key.encode())
        for prefix in (
            "",
            "p",
            "part",
            "part/",
            "part/a",
            "part/b",
            "part/b/",
            "log/1",
            "q",
            "q/r",
        ):
            want = [BlobEntry(key, len(key)) for key in sorted(keys) if key.startswith(prefix)]
            assert await blob.list(prefix) == want, prefix

    blob_place.with_blob(body)


def test_a_long_listing_is_whole(blob_place: Place) -> None:
    # More than one page of S3 (1000), and more names than files are looked at inline (256).
    keys = [f"part/{number:04d}" for number in range(1100 if blob_place.kind == "s3" else 300)]

    async def body(blob: Blob) -> None:
        for start in range(0, len(keys), 50):
            await asyncio.gather(*(blob.put(key, b"") for key in keys[start : start + 50]))
        assert [entry.key for entry in await blob.list("part/")] == keys

    blob_place.with_blob(body)


def test_deleted_is_gone_and_deleting_nothing_is_no_error(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        await blob.delete("part/none")
        await blob.put("part/a", b"a")
        await blob.put("part/b", b"b")
        await blob.delete("part/a")
        await blob.delete("part/a")
        await blob.delete("part")
        assert await blob.get("part/a") is None
        assert await blob.list("part/") == [BlobEntry("part/b", 1)]

    blob_place.with_blob(body)


def test_every_handle_sees_the_same_objects(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        other = open_blob(blob.url)
        assert other.url == blob.url
        await blob.put("part/a", b"a")
        assert await other.get("part/a") == b"a"
        assert not await other.put_if_absent("part/a", b"b")
        await other.delete("part/a")
        assert await blob.get("part/a") is None
        await other.close()

    blob_place.with_blob(body)


def test_objects_outlive_the_handle(blob_place: Place) -> None:
    async def write(blob: Blob) -> None:
        await blob.put("part/a", b"a")
        await blob.put_if_absent("log/1", b"1")

    async def read(blob: Blob) -> list[bytes | None]:
        return [await blob.get("part/a"), await blob.get("log/1")]

    blob_place.with_blob(write)
    assert blob_place.with_blob(read) == [b"a", b"1"]


@pytest.mark.parametrize(
    "key",
    ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a b", "ä", "~tmp/a", "a" * 201, "a\n"],
)
def test_a_key_that_is_none_is_refused(blob_place: Place, key: str) -> None:
    async def body(blob: Blob) -> None:
        for call in (
            lambda: blob.get(key),
            lambda: blob.get_range(key, 0, 1),
            lambda: blob.put(key, b""),
            lambda: blob.put_if_absent(key, b""),
            lambda: blob.delete(key),
        ):
            with pytest.raises(InvalidValue):
                await call()

    blob_place.with_blob(body)


def test_of_racing_tasks_one_wins(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        handles = [open_blob(blob.url) for _ in range(blob_place.racers)]
        for number in range(blob_place.rounds):
            values = [f"{number} {index}".encode() for index in range(blob_place.racers)]
            puts = zip(handles, values, strict=True)
            wins = await asyncio.gather(*(h.put_if_absent(f"log/{number}", v) for h, v in puts))
            assert sum(wins) == 1
            assert await blob.get(f"log/{number}") == values[wins.index(True)]
        for handle in handles:
            await handle.close()

    blob_place.with_blob(body)


def test_of_racing_processes_one_wins(shared_blob_place: Place, race: Race) -> None:
    rounds = shared_blob_place.rounds
    won = race(put_all, shared_blob_place.url, rounds)
    assert sorted(number for numbers in won.values() for number in numbers) == [
        *range(1, rounds + 1)
    ]

    async def body(blob: Blob) -> None:
        for name, numbers in won.items():
            for number in numbers:
                assert await blob.get(f"race/{number:04d}") == entry_of(name, number)

    shared_blob_place.with_blob(body)


def test_the_probe_passes_and_leaves_nothing(blob_place: Place) -> None:
    async def body(blob: Blob) -> None:
        await probe(blob)
        assert await blob.list("") == []

    blob_place.with_blob(body)


def test_a_native_url_names_the_object_for_spark(blob_place: Place) -> None:
    async def body(blob: Blob) -> str | None:
        return blob.native_url("part/a")

    native = blob_place.with_blob(body)
    scheme = {"memory": None, "files": "file", "s3": "s3a"}[blob_place.kind]
    assert (native and native.partition(":")[0]) == scheme
    assert native is None or native.endswith("/part/a")
