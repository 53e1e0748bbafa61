"""`noonmark sql` against a server: what it shows and how it ends."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from noonmark import cli
from noonmark.errors import ConfigError
from noonmark.serve.sql_client import statements
from support.serve.host import Host


def ask(host: Host, *words: str, typed: str = "") -> Result:
    url = f"postgresql://bob@{host.host}:{host.port}/d"
    return CliRunner().invoke(cli.app, ["sql", "--url", url, *words], input=typed)


def test_rows_and_tags_are_shown(host: Host) -> None:
    done = ask(host, "-c", "rows 2", "-c", "insert 1; insert 2")
    assert done.exit_code == 0
    assert "│ 2 │ row 2 │" in done.output
    assert "(2 rows)" in done.output
    assert done.output.count("INSERT 0 1") == 2


def test_an_error_ends_it_and_says_where(host: Host) -> None:
    done = ask(host, "-c", "rows 1;\nfail", "-c", "insert 1")
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        "ERROR:  duplicate key",
        "LINE 2: fail",
        "        ^",
        "DETAIL:  Key (n)=(1) exists.",
        "HINT:  Choose another.",
    ]
    assert host.sessions.values == []


def test_notices_and_help(host: Host) -> None:
    done = ask(host, "-c", "notice hello", "-c", r"\?")
    assert done.stderr == "NOTICE:  hello\n"
    assert r"\d [NAME]" in done.output


def test_statements_from_standard_input(host: Host) -> None:
    done = ask(host, typed="rows\n1;\ninsert 7;\ntable")
    assert done.exit_code == 0
    assert "row 1" in done.output
    assert "│ 7 │" in done.output


def test_rows_of_a_stream_are_lines(host: Host) -> None:
    url = f"postgresql://bob@{host.host}:{host.port}/d"
    main = "from noonmark.cli import main; main()"
    command = [sys.executable, "-c", main, "sql", "--url", url, "-c", "subscribe"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        host.until(lambda: host.sessions.listeners > 0)
        host.run(host.sessions.tick())
        assert client.stdout.readline() == "n\ts\n"
        assert client.stdout.readline() == "1\ttick 1\n"
        client.terminate()
    host.until(lambda: host.sessions.sessions[-1].closed)


def test_no_server_is_a_plain_error() -> None:
    with pytest.raises(ConfigError, match="cannot connect") as caught:
        CliRunner().invoke(
            cli.app,
            ["sql", "--url", "postgresql://bob:secret@127.0.0.1:1/d"],
            catch_exceptions=False,
        )
    assert "secret" not in str(caught.value)


def test_statements_end_with_a_semicolon_at_the_end_of_a_line() -> None:
    lines = ["select 1;\n", "select\n", "2 ; \n", r"\d" + "\n", "rest"]
    assert list(statements(lines)) == ["select 1;\n", "select\n2 ; \n", "\\d\n", "rest"]
