"""A server process whose sinks can be held inside of a transaction, so that they are killed there.

``python -m support.sink.server FOLDER`` prints its port when it serves. After a line on its
standard input, the next sink that would commit has written all of its transaction, messages and
progress, to Kafka, prints ``open ID`` instead, and waits for its end. All others go on.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

from confluent_kafka import Producer

from noonmark.sink import kafka
from support.strict.server import serve

_ASKED = threading.Semaphore(0)
_FLUSH_S = 30


class _Held(Producer):
    """A producer that stops before a commit, once for each time that it was asked to."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._id = options["transactional.id"]

    def commit_transaction(self, *given: Any) -> None:
        if _ASKED.acquire(blocking=False):
            self.flush(_FLUSH_S)
            print("open", self._id, flush=True)
            threading.Event().wait()
        super().commit_transaction(*given)


def _listen() -> None:
    for _ in sys.stdin:
        _ASKED.release()


if __name__ == "__main__":
    kafka.Producer = _Held  # type: ignore[misc]
    threading.Thread(target=_listen, daemon=True).start()
    asyncio.run(serve(sys.argv[1], None))
