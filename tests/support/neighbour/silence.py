"""Peers that do not answer: a port that takes connections and says nothing, and stopped servers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import support.neighbour.loopback  # noqa: F401 - they are on this machine


@contextmanager
def black_hole() -> Iterator[int]:
    """The port of a listener that accepts whoever comes, and never answers."""
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:

        def accept() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in kept:
                each.close()


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """A server and its children with SIGSTOP: connections stay, and nobody answers."""
    family = _family(process)
    for each in family:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in family:
            os.kill(each, signal.SIGCONT)


def _family(process: int) -> list[int]:
    found, left = [], [process]
    while left:
        found.append(left.pop())
        tasks = Path(f"/proc/{found[-1]}/task")
        for children in tasks.glob("*/children"):
            left += map(int, children.read_text().split())
    return found
