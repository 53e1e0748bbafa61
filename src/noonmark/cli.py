"""The command line, and the composition root: the one place that knows every part.

A command is a function in the module whose job it is; here it gets its name, one line each. Errors
that Noonmark raises on purpose end in one message on standard error and exit status 1.
"""

from __future__ import annotations

import sys

import click

from noonmark.backup.command import backup, restore
from noonmark.contents import export
from noonmark.demo.command import demo
from noonmark.errors import NoonmarkError
from noonmark.serve.command import serve
from noonmark.serve.sql_command import sql
from noonmark.shard.command import shard
from noonmark.version import __version__


@click.group("noonmark", no_args_is_help=True)
@click.version_option(__version__, prog_name="noonmark", message="%(prog)s %(version)s")
def app() -> None:
    """SQL views over changing data, exact at every time."""


for _command in (demo, serve, sql, shard, export, backup, restore):
    app.add_command(_command)


def main() -> None:
    """Run the command line; what the console script calls."""
    try:
        app(prog_name="noonmark")
    except NoonmarkError as error:
        click.echo(f"noonmark: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "noonmark":
            raise
        # `noonmark-reader` brings what reading needs, and no more.
        click.echo(f"noonmark: this command needs {error.name}, which is not installed", err=True)
        click.echo("hint: noonmark-reader only reads; `pip install noonmark` brings all.", err=True)
        sys.exit(1)
