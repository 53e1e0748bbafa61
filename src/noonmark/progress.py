"""A bar on standard error, for commands that take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: Told how many are done, and of how many.
Progress: TypeAlias = "Callable[[int, int], None]"


@contextmanager
def bar(what: str, *, hidden: bool = False) -> Iterator[Progress]:
    """A bar with a word in front, for the length of a block."""
    from rich import progress  # a server starts without it
    from rich.console import Console

    columns = (
        progress.TextColumn(what),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), disable=hidden) as shown:
        task = shown.add_task(what)

        def tell(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        yield tell
