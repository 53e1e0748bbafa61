"""The command line's own behaviour; each command is tested beside its module."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from noonmark import cli
from noonmark.errors import ConfigError
from noonmark.version import __version__


def test_version() -> None:
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"noonmark {__version__}\n")


def test_without_a_command_it_shows_help() -> None:
    done = CliRunner().invoke(cli.app, [])
    assert done.exit_code == 2
    assert "Usage: noonmark" in done.output


def test_our_errors_are_one_message_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def failing() -> None:
        raise ConfigError("no such place", hint="Look elsewhere.")

    monkeypatch.setattr(cli, "app", failing)
    monkeypatch.setattr(sys, "argv", ["noonmark"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "noonmark: no such place\nHINT: Look elsewhere.\n"


def test_help_needs_neither_spark_nor_a_second() -> None:
    seen = "import sys, noonmark.cli; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
