"""`noonmark demo`: its options. What runs is imported when it runs: Spark takes its time."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    seconds: Annotated[int, typer.Option(help="How long to run.", min=1)] = 15,
    data: Annotated[
        str | None, typer.Option(metavar="URL", help="Where to store; a temporary folder if not.")
    ] = None,
) -> None:
    """Serve two live sources and views over them, show them, and audit it all."""
    from noonmark.demo.run import run

    run(seconds, data)
