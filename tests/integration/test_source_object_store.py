"""FILES on a real object store: prefixes, ranges, objects that change under their names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import SourceStalled
from noonmark.persist.impl.open import open_blob
from noonmark.source import START, Frontier
from noonmark.source.contract import is_error
from noonmark.source.impl.files import Files, of_lines
from noonmark.source.splits import read_splits

if TYPE_CHECKING:
    from support.neighbour.servers import S3Server


def put(url: str, **objects: bytes) -> None:
    async def go() -> None:
        blob = open_blob(url)
        for name, value in objects.items():
            await blob.put(name.replace("__", "/").replace("_", "."), value)
        await blob.close()

    asyncio.run(go())


def pattern(url: str, names: str) -> str:
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path}/{names}").geturl()


def read(source: Files, lower: Frontier, upper: Frontier) -> tuple[list[bytes], list[str]]:
    values: list[bytes] = []
    reasons: list[str] = []
    for batch in read_splits(source, source.plan(lower, upper)):
        if is_error(batch):
            reasons += batch.column("_reason").to_pylist()
        else:
            values += batch.column("value").to_pylist()
    return sorted(values), reasons


def test_objects_are_read_as_files_are(s3_server: S3Server) -> None:
    url = s3_server.url(SYSTEM.fresh_id())
    put(url, in__a_json=b"1\n2\n", in__deep__b_json=b"3", in__c_csv=b"no\n")
    source = of_lines(pattern(url, "in/**/*.json"))
    first = asyncio.run(source.latest(SYSTEM))
    # An object is put whole: its end ends the last line.
    assert read(source, START, first) == ([b"1", b"2", b"3"], [])
    put(url, in__a_json=b"1\n2\n4\n", in__d_json=b"5\n")
    second = asyncio.run(source.latest(SYSTEM, first))
    assert read(source, first, second) == ([b"4", b"5"], [])
    put(url, in__a_json=b"9\n9\n9\n9\n")
    third = asyncio.run(source.latest(SYSTEM, second))
    values, [reason] = read(source, second, third)
    assert values == []
    assert reason.startswith("file 'a.json' was replaced")


def test_a_prefix_stands_for_all_below_it_and_an_object_for_itself(s3_server: S3Server) -> None:
    url = s3_server.url(SYSTEM.fresh_id())
    put(url, logs__a=b"1\n", logs__b__c=b"2\n", logs2=b"3\n")
    for names, values in (("logs/", [b"1", b"2"]), ("logs", [b"1", b"2"]), ("logs2", [b"3"])):
        source = of_lines(pattern(url, names))
        assert read(source, START, asyncio.run(source.latest(SYSTEM))) == (values, [])


def test_a_store_that_does_not_answer_stalls(s3_server: S3Server) -> None:
    url = pattern(s3_server.url("nothing"), "*")
    bucket = urlsplit(url).netloc
    source = of_lines(url.replace(f"//{bucket}/", "//no-such-bucket/"))
    with pytest.raises(SourceStalled, match="cannot list"):
        asyncio.run(source.latest(SYSTEM))
