"""The command line, and the composition root: the one place that knows every part.

A command is a function in the module whose job it is; here it gets its name, one line each. Errors
that Noonmark raises on purpose end in one message on standard error and exit status 1.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from noonmark.demo.command import demo
from noonmark.errors import NoonmarkError
from noonmark.serve.command import serve
from noonmark.serve.sql_command import sql
from noonmark.shard.command import app as shard_app
from noonmark.version import __version__

app = typer.Typer(
    name="noonmark",
    help="SQL views over changing data, exact at every time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(demo)
app.command()(serve)
app.command()(sql)
app.add_typer(shard_app, name="shard")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"noonmark {__version__}")
        raise typer.Exit


@app.callback()
def noonmark(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say it and stop."),
    ] = False,
) -> None:
    """SQL views over changing data, exact at every time."""


def main() -> None:
    """Run the command line; what the console script calls."""
    try:
        app()
    except NoonmarkError as error:
        typer.echo(f"noonmark: {error}", err=True)
        sys.exit(1)
