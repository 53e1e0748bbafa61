"""``python -m support.kill.crash_writer FOLDER SEED FIRST``: a writer that is meant to be killed.

Says on its standard output, in one write a line: ``o MS`` when the location is open and how long
that took, ``r`` when everything before FIRST is sealed; waits for a line on its standard input; and
then says the lines of `support.store.history.Load`.
SIGTERM ends it in good order: what was submitted is acknowledged, then it says ``e``.
"""

from __future__ import annotations

import os
import signal
import sys

from noonmark import persist
from noonmark.clock import SYSTEM
from support.store.history import CONFIG, Load


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def main(folder: str, seed: int, first: int) -> None:
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    began = SYSTEM.monotonic()
    client = persist.open(folder, options=persist.Options(config=CONFIG))
    say(f"o {round(1000 * (SYSTEM.monotonic() - began))}")
    load = Load(client, seed, first, say)
    load.seal_all()
    say("r")
    sys.stdin.readline()
    while not ending:
        load.step()
    load.finish()
    client.stop()
    say("e")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
