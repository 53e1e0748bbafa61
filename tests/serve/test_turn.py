"""A standby's turn comes when the process of the writer ends, however it ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from noonmark.persist.client import open_location
from noonmark.serve.turn import WRITING, Turn

_WRITER = """
import sys
from noonmark.persist.client import open_location
from noonmark.serve.turn import WRITING
client = open_location(sys.argv[1], options=WRITING)
print("writing", flush=True)
sys.stdin.read()
"""


def test_in_a_folder_a_death_is_noticed_at_once(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"writing\n"

    async def wait() -> None:
        turn = Turn(str(tmp_path), None, True, asyncio.Event())

        async def opening() -> None:
            client = await asyncio.to_thread(open_location, str(tmp_path), options=WRITING)
            await asyncio.to_thread(client.stop)

        waiting = asyncio.create_task(turn.await_in(opening))
        await asyncio.sleep(1)
        assert not waiting.done()
        writer.kill()
        async with asyncio.timeout(30):
            await waiting

    asyncio.run(wait())
    writer.communicate()
