"""`noonmark demo`: its options. What runs is imported when it runs: it takes its time."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--seconds",
    type=click.IntRange(1),
    help="How long to watch, then end. [15; in a terminal it goes on serving until Ctrl-C]",
)
@click.option("--data", metavar="URL", help="Where to store; a temporary folder if not.")
@click.option("--pg", metavar="HOST:PORT", help="PostgreSQL's protocol. [127.0.0.1:6875]")
@click.option("--http", metavar="HOST:PORT", help="HTTP and the console. [127.0.0.1:6876]")
def demo(seconds: int | None, data: str | None, pg: str | None, http: str | None) -> None:
    """Serve live sources and views over them, kill the server, and audit it all."""
    from noonmark.demo.run import run  # door: PostgreSQL's client: only who has such an object

    run(seconds, data, pg, http)
