"""The loop that a database runs on, in a thread of its own, and the way there from elsewhere.

`wait` blocks the thread that calls; `reach` is awaited on another loop. Both run the call on the
database's loop. A call that is cancelled elsewhere is cancelled there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from noonmark.errors import Stopped, UsageError
from noonmark.loops import new_loop

T = TypeVar("T")


class Bridge:
    """See the module. Any thread may call."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="noonmark-embedded", daemon=True
        )
        self._thread.start()
        self.closed = False

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call; blocks.

        Raises:
            Stopped: the database was closed.
        """
        return asyncio.run_coroutine_threadsafe(self._taken(call), self._loop).result()

    async def reach(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call, for who runs on another loop.

        Raises:
            Stopped: the database was closed.
        """
        future = asyncio.run_coroutine_threadsafe(self._taken(call), self._loop)
        return await asyncio.wrap_future(future)

    def _taken(self, call: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """The call, unless it cannot be made."""
        if self.closed:
            call.close()
            raise Stopped("the database was closed", hint="Open it again.")
        if threading.current_thread() is self._thread:
            call.close()
            raise UsageError("the database's own loop cannot wait for itself")
        return call

    def end(self) -> None:
        """Stop the loop and its thread."""
        self.closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
