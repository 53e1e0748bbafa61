"""`noonmark serve`: its options. What runs is imported when it runs: help needs no Spark.

An option of the command line wins over the same key of ``--config FILE``, a TOML file:

    data = "s3://bucket/place"
    pg = "0.0.0.0:6875"

The file alone may also say ``tls_certificate`` and ``tls_key`` (PEM files, for both front ends) and
``trust``: "local", users without a password may come from this machine; "nobody", they may not.
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
}


@click.command()
@click.option("--data", metavar="URL", help="Where everything is stored. [./noonmark-data]")
@click.option("--consensus", metavar="URL", help="Its log. [beside the data]")
@click.option("--spark", metavar="MASTER", help="Where Spark runs. [local[*]]")
@click.option("--pg", metavar="HOST:PORT", help="PostgreSQL's protocol. [127.0.0.1:6875]")
@click.option("--http", metavar="HOST:PORT", help="HTTP. [127.0.0.1:6876]")
@click.option("--config", metavar="FILE", type=Path, help="These options, as TOML.")
def serve(
    *,
    data: str | None,
    consensus: str | None,
    spark: str | None,
    pg: str | None,
    http: str | None,
    config: Path | None,
) -> None:
    """Serve SQL over PostgreSQL's protocol and HTTP."""
    given = {"data": data, "consensus": consensus, "spark": spark, "pg": pg, "http": http}
    options = merged(given, _read(config))
    from noonmark.serve.run import Settings, address, run, tls, trust

    run(
        Settings(
            data=options["data"],
            consensus=options["consensus"],
            spark=options["spark"],
            pg=address(options["pg"]),
            http=address(options["http"]),
            tls=tls(options["tls_certificate"], options["tls_key"]),
            trust_local=trust(options["trust"]),
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
        if not isinstance(value, str):
            raise ConfigError(f'option "{key}" is text, not {value!r}')
    said = {key: value for key, value in given.items() if value is not None}
    return {**DEFAULTS, **stored, **said}


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f'"{path}" cannot be read', detail=str(error)) from error
