"""`noonmark backup` and `noonmark restore`."""

from __future__ import annotations

import click

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError
from noonmark.persist.client import Options, open_location
from noonmark.persist.impl.open import open_blob, open_consensus
from noonmark.persist.runtime import Runtime
from noonmark.progress import bar

_DATA = click.option(
    "--data", default="./noonmark-data", show_default=True, help="The storage location."
)
_CONSENSUS = click.option("--consensus", metavar="URL", help="Its log, when that is elsewhere.")


@click.command("backup")
@click.argument("url")
@_DATA
@_CONSENSUS
@click.option("--keep", type=click.IntRange(min=1), help="Keep so many backups; older ones go.")
def backup(url: str, data: str, consensus: str | None, keep: int | None) -> None:
    """Back a location up to URL, at one commit; it may be written to meanwhile.

    A second backup to the same URL copies only what is new.
    """
    from noonmark.backup import make  # door: what runs is imported when it runs

    target = open_blob(url)
    options = Options(mode="independent")
    with open_location(data, consensus=consensus, options=options) as client:
        if client.state.seqno == 0:
            raise ConfigError(f'there is no storage location at "{data}"')
        with bar("backup") as tell:
            made = client.runtime.submit(make.make(client, target, tell)).result()
        gone = client.runtime.submit(make.keep(target, keep)).result() if keep else 0
        client.runtime.submit(target.close()).result()
    copied = made.copied
    click.echo(
        f"backup of entry {made.state.seqno}: {copied.parts} parts copied "
        f"({copied.bytes} bytes), {copied.present} were there"
        + (f", {gone} objects of older backups removed" if gone else "")
    )


@click.command("restore")
@click.argument("url")
@_DATA
@_CONSENSUS
@click.option("--entry", type=int, help="Which backup; the newest by default.")
def restore(url: str, data: str, consensus: str | None, entry: int | None) -> None:
    """Make a location from a backup; its place must be empty."""
    from noonmark.adapter.location import oracle_log  # door: as for `backup`
    from noonmark.backup import detach, make  # door: what runs is imported when it runs
    from noonmark.backup import restore as restoring  # door: what runs is imported when it runs
    from noonmark.oracle.reserved import ReservedOracle  # door: what runs is imported when it runs

    ticket = SYSTEM.fresh_id()
    runtime = Runtime.start(SYSTEM)
    try:
        store, blob = open_blob(url), open_blob(data)
        log = open_consensus(consensus if consensus is not None else data)
        state = runtime.submit(make.state_of(store, entry)).result()
        with bar("restore") as tell:
            work = restoring.restore(state, store, (blob, log), ticket, clock=SYSTEM, progress=tell)
            copied = runtime.submit(work).result()
        for each in (store, blob, log):
            runtime.submit(each.close()).result()
    finally:
        runtime.stop()
    options = Options(reentrance_id=ticket, notify_host=None)
    with open_location(data, consensus=consensus, options=options) as client:
        times = oracle_log(data, consensus)
        oracle = ReservedOracle.open(client.runtime, times, alone=True, config=client.config)
        try:
            detached = detach.detach(client, oracle, SYSTEM)
        except BaseException:
            client.runtime.submit(restoring.lock_again(client, ticket)).result()
            raise
        finally:
            oracle.close()
    click.echo(f"restored entry {state.seqno}: {copied.parts} parts ({copied.bytes} bytes)")
    for name in detached.slots:
        click.echo(f"source {name}: its slot is the original's; ALTER SOURCE {name} REFRESH")
    for name in detached.sinks:
        click.echo(f"sink {name}: left out; create it anew, with a topic of its own")
