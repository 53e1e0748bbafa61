"""The process from which statement workers are forked.

It is started as a program of its own, so it has none of the server's threads, sockets and secrets;
it reads the code that workers need once, so a worker is there in milliseconds. It takes requests
over one socket, one at a time:

    fork    with the socket of the new worker; gives its process id
    reap    a worker that has ended; gives how
    drop    a worker that nobody wants any more: it is killed, and reaped when it is gone

A worker is only reaped when one of the two is asked for: until then its process id is nobody
else's. To give back a lot of memory takes a killed process a while, at its low priority: nobody
waits for that. When the server ends, the socket closes, this process ends, and with it all workers.

Where it runs: `Zygote` in the server, any thread; `serve` in the process itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading

from noonmark.adapter.worker.errors import WorkerLost

_REQUEST = struct.Struct("!cQ")
_REPLY = struct.Struct("!q")
_FORK, _REAP, _DROP = b"F", b"R", b"D"
#: How often those who were killed are looked at.
_LOOK_MS = 50


class Zygote:
    """The server's end. One for all databases of a process; started when it is first needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None

    def start(self) -> None:
        """Have it started; blocks until it can fork."""
        with self._turn:
            self._ready()

    def fork(self, memory_bytes: int) -> tuple[int, socket.socket]:
        """A new worker: its process id and the socket to it. Blocks for some milliseconds.

        Raises:
            WorkerLost: the process cannot be started.
        """
        ours, theirs = socket.socketpair()
        try:
            with self._turn:
                for _ in range(2):  # once more: it may have died since
                    link = self._ready()
                    try:
                        socket.send_fds(
                            link, [_REQUEST.pack(_FORK, memory_bytes)], [theirs.fileno()]
                        )
                        return self._reply(link), ours
                    except (OSError, EOFError):
                        self._end()
        finally:
            theirs.close()
        ours.close()
        raise WorkerLost("no statement worker can be started")

    def reap(self, pid: int) -> int | None:
        """How a worker ended: minus its signal, or its exit status; None if nobody knows."""
        with self._turn:
            if self._link is None:
                return None
            try:
                self._link.sendall(_REQUEST.pack(_REAP, pid))
                return self._reply(self._link)
            except (OSError, EOFError):
                self._end()
                return None

    def drop(self, pid: int) -> None:
        """Have a worker killed and reaped; does not wait until it is gone."""
        with self._turn:
            if self._link is not None:
                try:
                    self._link.sendall(_REQUEST.pack(_DROP, pid))
                except OSError:
                    self._end()

    def stop(self) -> None:
        """End it, and all workers."""
        with self._turn:
            self._end()

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return None if self._process is None else self._process.pid

    def _ready(self) -> socket.socket:
        if self._link is not None and self._process is not None and self._process.poll() is None:
            return self._link
        self._end()
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,  # not a session of its own: Linux shares processors by sessions
                env={name: text for name, text in os.environ.items() if _is_plain(name)},
            )
        self._link = ours
        try:
            self._reply(ours)
        except (OSError, EOFError):
            self._end()
            raise WorkerLost("the process that starts statement workers does not start") from None
        return ours

    @staticmethod
    def _reply(link: socket.socket) -> int:
        data = b""
        while len(data) < _REPLY.size:
            more = link.recv(_REPLY.size - len(data))
            if not more:
                raise EOFError
            data += more
        return int(_REPLY.unpack(data)[0])

    def _end(self) -> None:
        link, self._link = self._link, None
        process, self._process = self._process, None
        if link is not None:
            link.close()
        if process is not None:
            process.kill()
            process.wait()


def _is_plain(name: str) -> bool:
    """Whether a variable is no secret of the server's or of its stores."""
    return not name.startswith(("NOONMARK_", "AWS_", "AZURE_", "GOOGLE_", "PG"))


ZYGOTE = Zygote()
atexit.register(ZYGOTE.stop)


# -- in the process itself ------------------------------------------------------------------------


def serve(link: socket.socket) -> None:
    """Fork and reap until the server closes the socket."""
    from noonmark.adapter.peek import remote  # door: as for child; it plans long queries
    from noonmark.adapter.worker import child  # door: what evaluates is not for the server

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child.warm()
    remote.warm()
    gc.collect()
    gc.freeze()  # what is here now is shared by all workers, and never garbage
    link.sendall(_REPLY.pack(os.getpid()))
    dying: set[int] = set()
    asked = select.poll()
    asked.register(link, select.POLLIN)
    while True:
        while dying and not asked.poll(_LOOK_MS):
            dying = {pid for pid in dying if not _is_gone(pid)}
        data, sockets, _, _ = socket.recv_fds(link, _REQUEST.size, 1)
        if len(data) < _REQUEST.size:
            os._exit(0)
        kind, number = _REQUEST.unpack(data)
        if kind == _DROP:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
            dying.add(number)
            continue
        if kind == _REAP:
            link.sendall(_REPLY.pack(_reaped(number)))
            continue
        pid = os.fork()
        if pid == 0:
            link.close()
            child.main(socket.socket(fileno=sockets[0]), number)
        os.close(sockets[0])
        link.sendall(_REPLY.pack(pid))


def _is_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _reaped(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # if it still runs, nobody wants it any more
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
