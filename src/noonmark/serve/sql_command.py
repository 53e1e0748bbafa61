"""`noonmark sql`: its options. What runs is imported when it runs."""

from __future__ import annotations

import sys

import click

DEFAULT_URL = "postgresql://noonmark@127.0.0.1:6875/noonmark"


@click.command()
@click.option(
    "--command", "-c", metavar="SQL", multiple=True, help="Run this and stop; may be repeated."
)
@click.option("--url", metavar="URL", default=DEFAULT_URL, show_default=True, help="The server.")
def sql(command: tuple[str, ...], url: str) -> None:
    """Talk SQL to a server: statements from -c, from standard input, or from you."""
    # door: PostgreSQL's client: only who has such an object
    from noonmark.serve.sql_client import run

    sys.exit(run(url, list(command)))
