"""The commands: tables and progress bars for people, `--json` for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from noonmark.adapter.location import oracle_log
from noonmark.errors import ConfigError, NotYetComplete, UsageError
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.part.run import DIFF
from noonmark.progress import Progress, bar
from noonmark.rows import postgres
from noonmark.rows.arrow import from_table
from noonmark.rows.schema import Column
from noonmark.shard import facts
from noonmark.shard.verify import Report, verify

Command = TypeVar("Command", bound=Callable[..., None])

_DEFAULT = "./noonmark-data"


@click.group(no_args_is_help=True)
def shard() -> None:
    """Read-only tools on a storage location."""


def _options(command: Command) -> Command:
    """What every command takes."""
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="One JSON document (dump: one per line)."
    )
    log = click.option("--consensus", metavar="URL", help="Its log, when that is elsewhere.")
    data = click.option(
        "--data", metavar="URL", default=_DEFAULT, show_default=True, help="The storage location."
    )
    return data(log(as_json(command)))


@contextmanager
def _location(data: str, consensus: str | None) -> Iterator[Client]:
    options = Options(mode="independent")
    with open_location(data, consensus=consensus, options=options) as client:
        if client.state.seqno == 0:
            raise ConfigError(
                f'there is no storage location at "{data}"',
                hint="Say --data, and --consensus when the log is elsewhere.",
            )
        yield client


@shard.command("ls")
@_options
def list_command(data: str, consensus: str | None, as_json: bool) -> None:
    """List the shards of a location."""
    with _location(data, consensus) as client:
        shards = facts.list_shards(client.state)
        about = facts.describe_location(client.state)
    if as_json:
        click.echo(json.dumps({"location": about, "shards": shards}))
        return
    writer = about["writer"] or "nobody"
    title = f"{data}: shards at entry {about['seqno']}, written by {writer}"
    _print_table(title, shards)


@shard.command("show")
@click.argument("name")
@_options
def show_command(name: str, data: str, consensus: str | None, as_json: bool) -> None:
    """Show one shard: schema, frontiers, batches, parts, holds."""
    with _location(data, consensus) as client:
        shown = facts.show_shard(client.state, name)
    if as_json:
        click.echo(json.dumps(shown))
        return
    contents, held = shown.pop("contents"), shown.pop("held")
    _print_table(name, [{"what": key, "value": value} for key, value in shown.items()])
    _print_table("batches", contents)
    if held:
        _print_table("holds", held)


@shard.command("verify")
@_options
def verify_command(data: str, consensus: str | None, as_json: bool) -> None:
    """Read every stored object back and check it; exit status 1 when something is wrong."""
    with _location(data, consensus) as client, bar("verify", hidden=as_json) as tell:
        report = client.runtime.submit(_verify(client, data, consensus, tell)).result()
    findings = [{"object": f.object, "problem": f.problem} for f in report.findings]
    counts = {k: v for k, v in vars(report).items() if isinstance(v, int)}
    if as_json:
        unclaimed = list(report.unclaimed)
        click.echo(json.dumps({**counts, "unclaimed": unclaimed, "findings": findings}))
    else:
        _print_table("verified", [counts])
        if report.unclaimed:
            _print_table("belong to nobody", [{"object": each} for each in report.unclaimed])
        if findings:
            _print_table("findings", findings)
    if findings:
        sys.exit(1)


async def _verify(client: Client, data: str, consensus: str | None, tell: Progress) -> Report:
    """On the loop: the location, and its oracle beside it."""
    oracle = oracle_log(data, consensus)
    try:
        return await verify(client, oracle, tell)
    finally:
        await oracle.close()


@shard.command("dump")
@click.argument("name")
@click.option("--as-of", type=int, metavar="T", help="The time; the newest by default.")
@_options
def dump_command(
    name: str, as_of: int | None, data: str, consensus: str | None, as_json: bool
) -> None:
    """Print the rows of a shard at one time, tab-separated or as JSON lines."""
    with _location(data, consensus) as client:
        _, read = client.create_or_load(name)
        time = _newest(read.upper.only(), name) if as_of is None else as_of
        snapshot = read.snapshot(time, wait=False).result()
        schema = read.codec.schema
        if not as_json:
            click.echo("\t".join(schema.names))
        for table in snapshot.tables():
            diffs = table.column(DIFF).to_pylist()
            rows = from_table(table.drop_columns([DIFF]), schema)
            for row, diff in zip(rows, diffs, strict=True):
                texts = [_text(value, column) for value, column in zip(row, schema, strict=True)]
                line = _json_line(schema.names, texts) if as_json else _tab_line(texts)
                sys.stdout.write(line * diff)


def _newest(upper: int | None, name: str) -> int:
    if upper is None:
        raise UsageError(f'"{name}" is complete for ever: say --as-of which time')
    if upper == 0:
        raise NotYetComplete(f'"{name}" has no complete time yet')
    return upper - 1


def _text(value: object, column: Column) -> str | None:
    """A value as psql would print it."""
    encoded = postgres.encode_text(value, column.type)
    return None if encoded is None else encoded.decode()


def _json_line(names: tuple[str, ...], values: list[str | None]) -> str:
    return json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False) + "\n"


def _tab_line(values: list[str | None]) -> str:
    return "\t".join("\\N" if value is None else value for value in values) + "\n"


def _print_table(title: str, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in rows[0] if rows else ["nothing"]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console().print(table)
