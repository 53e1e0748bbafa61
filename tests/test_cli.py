"""The command line's own behaviour; each command is tested beside its module."""

from __future__ import annotations

import signal
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


#: The program is interrupted while it reads the first module of the command line.
_INTERRUPTED = """
import os, signal, sys
class Interrupts:
    @staticmethod
    def find_spec(name, *rest):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts)
signal.signal(signal.SIGINT, {handler})
sys.argv = ["noonmark", "--version"]
from noonmark.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("handler", "status"), [("signal.default_int_handler", -signal.SIGINT), ("signal.SIG_IGN", 0)]
)
def test_ctrl_c_before_the_program_is_there_ends_it_without_a_trace(
    handler: str, status: int
) -> None:
    """As the system ends programs; one that was started to ignore Ctrl-C goes on ignoring it."""
    code = _INTERRUPTED.format(handler=handler)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
