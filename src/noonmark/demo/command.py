"""`noonmark demo`: its options. What runs is imported when it runs: Spark takes its time."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--seconds", type=click.IntRange(1), default=15, show_default=True, help="How long to run."
)
@click.option("--data", metavar="URL", help="Where to store; a temporary folder if not.")
def demo(seconds: int, data: str | None) -> None:
    """Serve two live sources and views over them, show them, and audit it all."""
    from noonmark.demo.run import run

    run(seconds, data)
