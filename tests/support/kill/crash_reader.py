"""``python -m support.kill.crash_reader FOLDER MODE SEED``: a reader beside a killed writer.

Reads snapshots at random readable times and follows one collection by `listen`, until its standard
input ends. Says ``v NAME TIME DIGEST`` for what it read, ``f NAME SINCE UPPER`` for the frontiers
that it saw, and ``x WHAT`` for an error that a reader must never get.
"""

from __future__ import annotations

import os
import sys
import threading
from random import Random

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import BeforeSince, NoonmarkError
from support.store.history import CONFIG, NAMES, digest_of, read_digest

_WAIT_S = 0.01


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


class Watcher:
    """One process that reads."""

    def __init__(self, client: persist.Client, seed: int) -> None:
        self.client = client
        self.random = Random(f"reader/{seed}/{client.options.mode}")
        self.ending = threading.Event()

    def look(self) -> None:
        """One snapshot of a random collection at a random readable time."""
        name = self.random.choice(NAMES)
        if name not in self.client.state.names:
            return
        _, read = self.client.create_or_load(name)
        since, upper = read.since.only(), read.upper.only()
        assert since is not None
        assert upper is not None
        say(f"f {name} {since} {upper}")
        if since == upper:
            return
        as_of = self.random.choice((upper - 1, self.random.randrange(since, upper)))
        try:
            say(f"v {name} {as_of} {read_digest(read, as_of)}")
        except BeforeSince as error:
            if error.fields["since"].less_equal(as_of):
                say(f"x {error}")

    def follow(self, name: str) -> None:
        """Snapshot plus every step of a listen is the contents, at every step."""
        while not self.ending.is_set():
            if name not in self.client.state.names:
                self.ending.wait(_WAIT_S)
                continue
            _, read = self.client.create_or_load(name)
            since, upper = read.since.only() or 0, read.upper.only() or 0
            if since < upper:
                try:
                    self._listen(read, name, upper - 1)
                except BeforeSince:
                    continue  # it holds nothing and was overtaken, which independent readers may be
            self.ending.wait(_WAIT_S)

    def _listen(self, read: persist.ReadHandle, name: str, as_of: int) -> None:
        listen = read.listen(as_of)
        total = read_digest(read, as_of)
        stopper = threading.Thread(target=lambda: (self.ending.wait(), listen.cancel()))
        stopper.start()
        try:
            for step in listen:
                total = (total + digest_of(step.table)) % 2**64
                say(f"v {name} {(step.progress.only() or 0) - 1} {total}")
        finally:
            if self.ending.is_set():
                stopper.join()

    def guard(self, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except NoonmarkError as error:
            say("x " + str(error).replace("\n", " "))


def main(folder: str, mode: persist.client.Mode, seed: int) -> None:
    client = persist.open(folder, options=persist.Options(mode=mode, config=CONFIG))
    watcher = Watcher(client, seed)
    name = watcher.random.choice(NAMES)
    follower = threading.Thread(target=watcher.guard, args=(watcher.follow, name))
    ender = threading.Thread(target=lambda: (sys.stdin.read(), watcher.ending.set()))
    follower.start()
    ender.start()
    while not watcher.ending.is_set():
        watcher.guard(watcher.look)
        watcher.ending.wait(_WAIT_S * SYSTEM.random())
    follower.join()
    client.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]
