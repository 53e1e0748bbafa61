"""A reader that follows the log and comes to a damaged entry says so to everybody who waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark import persist
from noonmark.errors import Corrupt
from noonmark.rows.schema import Schema

CONFIG = persist.Config(poll_s=0.01)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", ["polling", "notified", "independent"])
def test_who_waits_is_told_and_what_is_known_stays_readable(
    tmp_path: Path, mode: persist.client.Mode
) -> None:
    with persist.open(tmp_path, options=persist.Options(config=CONFIG)) as writer:
        write, _ = writer.create_or_load("c", Schema.of(id="bigint"))
        write.write([persist.Update((1,), 1, 1)])
        write.seal(2).result()
        newest = max((tmp_path / "log").iterdir())
    options = persist.Options(mode=mode, config=CONFIG)
    with persist.open(tmp_path, options=options) as reader:
        _, read = reader.create_or_load("c")
        waiting = read.snapshot(5)
        following = tmp_path / "log" / f"{int(newest.name) + 2:020d}"  # after the lock's release
        following.write_bytes(b"")
        with pytest.raises(Corrupt) as caught:
            waiting.result(30)
        assert caught.value.fields["object"] == f"log/{int(following.name)}"
        assert read.snapshot(1).result().rows() == [(1,)]
