"""`noonmark sql`: its options. What runs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

DEFAULT_URL = "postgresql://noonmark@127.0.0.1:6875/noonmark"


def sql(
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="SQL", help="Run this and stop; may be repeated."),
    ] = None,
    url: Annotated[str, typer.Option(metavar="URL", help="The server.")] = DEFAULT_URL,
) -> None:
    """Talk SQL to a server: statements from -c, from standard input, or from you."""
    from noonmark.serve.sql_client import run

    raise typer.Exit(run(url, command or []))
