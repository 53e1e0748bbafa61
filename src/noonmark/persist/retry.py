"""Retries: transient errors of the outside world, waited out with backoff and counted.

`Determinate` errors are retried always, `Indeterminate` ones only when the call says that doing
it twice is the same as doing it once. `StorageUnfit` is not transient. What was retried is
visible in `Retries`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from noonmark.clock import Clock
from noonmark.errors import Determinate, Indeterminate, StorageError
from noonmark.persist.config import Config

T = TypeVar("T")


class Retries:
    """How often each operation was tried again, and why the last time."""

    def __init__(self, clock: Clock, config: Config) -> None:
        self.clock = clock
        self.config = config
        self.counts: Counter[str] = Counter()
        self.last_error: StorageError | None = None

    async def run(
        self, operation: str, call: Callable[[], Awaitable[T]], *, idempotent: bool = True
    ) -> T:
        """Call until it answers, or its error is final, or the deadline has passed."""
        pause = self.backoff(operation)
        while True:
            try:
                return await call()
            except Determinate as error:
                await pause(error)
            except Indeterminate as error:
                if not idempotent:
                    raise
                await pause(error)

    def backoff(self, operation: str) -> Callable[[StorageError], Awaitable[None]]:
        """Waiting that grows with each error and raises it once the deadline has passed."""
        config, clock = self.config, self.clock
        deadline = clock.monotonic() + config.retry_deadline_s
        wait = config.retry_first_s

        async def pause(error: StorageError) -> None:
            nonlocal wait
            self.counts[operation] += 1
            self.last_error = error
            if clock.monotonic() >= deadline:
                raise error
            await clock.sleep(wait * (0.5 + clock.random()))
            wait = min(wait * 2, config.retry_largest_s)

        return pause
