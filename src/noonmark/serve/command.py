"""`noonmark serve`: its options. What runs is imported when it runs: help needs no Spark.

An option of the command line wins over the same key of ``--config FILE``, a TOML file:

    data = "s3://bucket/place"
    pg = "0.0.0.0:6875"
    connect_allow = ["10.0.0.0/8", "db.example"]

The file alone may also say ``tls_certificate`` and ``tls_key`` (PEM files, for both front ends) and
``trust``: "local", users without a password may come from this machine; "nobody", they may not;
and the limits of docs/operate/limits.md: ``statement_workers``, ``tick_timeout`` and so on.

What is secret is never an option: NOONMARK_PASSWORD (of the built-in superuser, at the first start)
and NOONMARK_METRICS_TOKEN come from the environment, or from files.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from noonmark.errors import ConfigError

DEFAULTS = {
    "data": "./noonmark-data",
    "consensus": None,
    "spark": "local[*]",
    "pg": "127.0.0.1:6875",
    "http": "127.0.0.1:6876",
    "tls_certificate": None,
    "tls_key": None,
    "trust": "local",
    "log_format": "text",
    "connect_allow": None,
    "connect_deny": None,
    "files_root": "",
    "metrics": None,
    "otlp": None,
    "password_file": None,
    "metrics_token_file": None,
    **dict.fromkeys(
        (
            "statement_workers",
            "statement_worker_memory",
            "statement_write_rows_max",
            "copy_memory",
            "subscribe_rows_max",
            "subscribe_memory",
            "mirror_memory",
            "tick_timeout",
            "max_connections",
            "session_memory",
            "sessions_memory",
            "session_objects_max",
            "receive_memory",
            "spark_driver_memory",
            "spark_python_memory",
        )
    ),
}

#: Options that may be a list in the file.
_LISTS = ("connect_allow", "connect_deny", "files_root")
#: Files that no source may read.
_OWN_FILES = ("tls_certificate", "tls_key", "password_file", "metrics_token_file")


@click.command()
@click.option("--data", metavar="URL", help="Where everything is stored. [./noonmark-data]")
@click.option("--consensus", metavar="URL", help="Where its log is stored. [beside the data]")
@click.option("--spark", metavar="MASTER", help="Where Spark runs. [local[*]]")
@click.option("--pg", metavar="HOST:PORT", help="PostgreSQL's protocol. [127.0.0.1:6875]")
@click.option("--http", metavar="HOST:PORT", help="HTTP and the console. [127.0.0.1:6876]")
@click.option("--metrics", metavar="HOST:PORT", help="Metrics, there alone. [with HTTP]")
@click.option("--otlp", metavar="URL", help="Where OpenTelemetry traces go. [nowhere]")
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="The form of the log. [text]"
)
@click.option("--connect-allow", metavar="LIST", help="Where connections may go all the same.")
@click.option("--connect-deny", metavar="LIST", help="Where they may not. [link-local]")
@click.option("--files-root", metavar="LIST", help="What FROM FILES may read.")
@click.option("--password-file", metavar="FILE", help="The superuser's password, at first.")
@click.option("--metrics-token-file", metavar="FILE", help="What /metrics asks for.")
@click.option("--config", metavar="FILE", type=Path, help="These options, as TOML.")
@click.option("--read-only", is_flag=True, help="Beside the server that writes, or without one.")
@click.option("--standby", is_flag=True, help="Take over when the server that writes is gone.")
@click.option("--insecure-listen", is_flag=True, help="Beyond loopback without TLS or passwords.")
def serve(
    *,
    config: Path | None,
    insecure_listen: bool,
    read_only: bool,
    standby: bool,
    **given: str | None,
) -> None:
    """Serve SQL over PostgreSQL's protocol and HTTP."""
    if read_only and standby:
        raise click.UsageError("--read-only never writes, so it cannot be a --standby")
    options = merged(given, _read(config))
    from noonmark.adapter.worker.limits import limits_of  # door: what runs is imported when it runs

    # door: the HTTP server: a command that does not serve starts without it
    from noonmark.serve.run import Settings, address, run, secret_of, tls, trust

    run(
        Settings(
            data=options["data"],
            consensus=options["consensus"],
            spark=options["spark"],
            pg=address(options["pg"]),
            http=address(options["http"]),
            tls=tls(options["tls_certificate"], options["tls_key"]),
            trust_local=trust(options["trust"]),
            log_format=options["log_format"],
            connect_allow=options["connect_allow"],
            connect_deny=options["connect_deny"],
            files_root=options["files_root"],
            own_files=tuple(filter(None, (options[name] for name in _OWN_FILES)))
            + ((str(config),) if config else ()),
            metrics=address(options["metrics"]) if options["metrics"] else None,
            otlp=options["otlp"],
            metrics_token=secret_of("NOONMARK_METRICS_TOKEN", options["metrics_token_file"]),
            password=secret_of("NOONMARK_PASSWORD", options["password_file"]),
            insecure_listen=insecure_listen,
            read_only=read_only,
            standby=standby,
            limits=limits_of(options),
        )
    )


def merged(given: dict[str, str | None], stored: dict[str, Any]) -> dict[str, Any]:
    """The options: those of the command line, then those of the file, then the defaults.

    Raises:
        ConfigError: the file has a key that is no option, or a value that is no text.
    """
    for key, value in stored.items():
        if key not in DEFAULTS:
            raise ConfigError(f'"{key}" is no option', hint=f"They are {', '.join(DEFAULTS)}.")
        if isinstance(value, list) and key in _LISTS and all(isinstance(v, str) for v in value):
            continue
        if not isinstance(value, str):
            raise ConfigError(f'option "{key}" is text, not {value!r}')
    texts = {k: ",".join(v) if isinstance(v, list) else v for k, v in stored.items()}
    if texts.get("log_format", "text") not in ("text", "json"):
        raise ConfigError('log_format is "text" or "json"')
    said = {key: value for key, value in given.items() if value is not None}
    return {**DEFAULTS, **texts, **said}


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f'"{path}" cannot be read', detail=str(error)) from error
