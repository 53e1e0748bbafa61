"""Which files a source may read (`source.impl.file_guard`): links, ``..``, globs, our own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError
from noonmark.source.impl.file_guard import Guard, place_of
from noonmark.source.impl.file_store import open_store
from noonmark.source.impl.files import of_lines


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A root with a file, a folder beside it, and every way to get from one to the other."""
    for name in ("root/inside", "outside", "data/log"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root/good.txt").write_text("good\n")
    (tmp_path / "root/inside/good.txt").write_text("good\n")
    (tmp_path / "outside/secret.txt").write_text("secret\n")
    (tmp_path / "data/log/0").write_text("secret\n")
    (tmp_path / "rootbeer.txt").write_text("secret\n")
    return tmp_path


def guard(places: Path) -> Guard:
    return Guard.of(f"{places}/root, s3://lake/in", (str(places / "data"), "s3://lake/in/data"))


def read(pattern: str, allowed: Guard) -> str:
    """Everything that a pattern gives, as a source reads it."""
    source = of_lines(pattern, guard=allowed)
    source.check()
    store = open_store(pattern, allowed)
    text = ""
    for entry in store.list():
        file = store.open(entry.name)
        assert file is not None
        text += file.read(0, file.size()).decode()
        file.close()
    asyncio.run(source.latest(SYSTEM))
    return text


def test_what_is_below_a_root_is_read(places: Path) -> None:
    root = f"{places}/root"
    os.symlink(f"{root}/good.txt", f"{root}/linked.txt")
    for pattern in (root, f"{root}/", f"{root}/*.txt", f"file://{root}/good.txt",
                    f"{places}/outside/../root/good.txt"):  # fmt: skip
        assert "good" in read(pattern, guard(places)), pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "/etc/passwd",
        "/etc/pass*",
        "file:///etc/passwd",
        "file:///etc/%70asswd",
        "{}/root/../outside/secret.txt",
        "{}/root/../outside/*.txt",
        "{}/outside/**",
        "{}/rootbeer.txt",
        "{}/root*",
        "{}",
        "/",
        "/**",
        "{}/data/log/0",
        "{}/data/**",
        "{}/root/to_folder/*",
        "{}/root/to_folder/secret.txt",
        "{}/root/to_file.txt",
        "{}/root/**",
        "{}/root/pipe",
    ],
)
def test_what_is_elsewhere_is_not(places: Path, pattern: str) -> None:
    os.symlink(places / "outside", places / "root/to_folder")
    os.symlink(places / "outside/secret.txt", places / "root/to_file.txt")
    os.mkfifo(places / "root/pipe")
    with pytest.raises(NoonmarkError) as caught:
        read(pattern.format(places), guard(places))
    assert caught.value.sqlstate == "42501", caught.value


def test_the_servers_own_files_are_read_by_nobody(places: Path) -> None:
    anywhere = Guard.of("", (str(places / "data"),))
    assert "secret" in read(f"{places}/outside/*", anywhere)
    for pattern in (f"{places}/data/log/0", f"{places}/**", str(places)):
        with pytest.raises(NoonmarkError, match="may not be read here"):
            read(pattern, anywhere)


def test_a_link_that_changes_after_it_was_listed(places: Path) -> None:
    link = places / "root/changing.txt"
    os.symlink(places / "root/good.txt", link)
    store = open_store(f"{places}/root/changing.txt", guard(places))
    assert len(store.list()) == 1
    link.unlink()
    os.symlink(places / "outside/secret.txt", link)
    with pytest.raises(NoonmarkError, match="may not be read here"):
        store.open("changing.txt")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("s3://lake/in/x/*.json", True),
        ("s3://lake/in/", True),
        ("s3://lake/inside/x", False),
        ("s3://lake/in/../out/x", False),
        ("s3://other/in/x", False),
        ("s3://lake/in/data/log", False),
        ("gs://lake/in/x", False),
    ],
)
def test_an_object_store_is_a_place(places: Path, url: str, allowed: bool) -> None:
    options = "?region=x&skip_signature=true"
    if allowed and not url.endswith("in/"):
        open_store(url + options, guard(places))
    else:
        with pytest.raises(NoonmarkError) as caught:
            open_store(url + options, guard(places))
        assert caught.value.sqlstate == "42501"


def test_an_object_store_at_an_address_of_this_machine(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOONMARK_CONNECT_ALLOW", raising=False)
    monkeypatch.setenv("NOONMARK_CONNECT_DENY", "loopback")
    with pytest.raises(NoonmarkError, match="not allowed here"):
        open_store("s3://lake/in/x/*?aws_endpoint=http://127.0.0.1:9000", guard(places))


def test_places() -> None:
    assert place_of("/a/b/../c") == "/a/c"
    assert place_of("s3://B/x//y/") == "s3://b/x/y"
