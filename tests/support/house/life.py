"""The files that a row passes, from Kafka to a SELECT, traced in a real run.

`python tests/support/house/life.py` starts a broker and a database, sends one record with a marker
in it, waits until a SELECT has it, and writes what it saw into docs/life-of-a-row.md and
docs/life-of-a-query.md.

A function *has the row in hand* when the marker is in one of its arguments, or in what it returns:
texts, bytes, Arrow's buffers, tuples, lists, dicts, and dataclasses of these. The state of the log
is not looked into: small batches lie in it, and everybody has the state. A file is on the row's
path if a function of it has the row in hand. The path of a query is the files whose functions are
called between its text and its rows. A *crossing* is a step from one file to the next, in the order
in which they are first come to, that leads to another folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa

import noonmark
from support.neighbour.kafka import installed_jars, start_kafka
from support.serve.reading import Conversation, connect, database

ROOT = Path(__file__).resolve().parents[3]
MARKER = "a-row-to-follow"
_BYTES = MARKER.encode()
_SOURCE = str(Path(noonmark.__file__).parent) + "/"
_ITEMS_MAX, _DEPTH_MAX = 64, 5
#: What holds everything, rows too.
_HOLDERS = ("State", "Draft", "Pending")
#: Set in what is done for the query, and not in what goes on beside it.
_asked: ContextVar[bool] = ContextVar("asked", default=False)
#: A section of a page that is made here.
_BEGIN = "<!-- Made by tests/support/house/life.py from a real run: change it there. -->"
_END = "<!-- The end of what is made. -->"


def has_row(value: Any, depth: int = _DEPTH_MAX) -> bool:
    """Whether the marker is in it."""
    if isinstance(value, str):
        return MARKER in value
    if isinstance(value, bytes | bytearray):
        return _BYTES in value
    if isinstance(value, pa.Array):
        return any(b is not None and _BYTES in b.to_pybytes() for b in value.buffers())
    if isinstance(value, pa.ChunkedArray):
        return any(has_row(each) for each in value.chunks)
    if isinstance(value, pa.RecordBatch | pa.Table):
        return any(has_row(each) for each in value.columns)
    if not depth:
        return False
    return any(has_row(each, depth - 1) for each in _parts(value))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, tuple | list | frozenset | set):
        return list(value)[:_ITEMS_MAX]
    if isinstance(value, dict):
        return [*value.keys(), *value.values()][:_ITEMS_MAX]
    if dataclasses.is_dataclass(value) and type(value).__name__ not in _HOLDERS:
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return []


@contextmanager
def traced(wanted: Callable[[FrameType, str, Any], bool]) -> Iterator[dict[str, str]]:
    """The files whose functions are wanted, in the order in which they are first come to."""
    found: dict[str, str] = {}
    busy = threading.local()

    def see(frame: FrameType, event: str, value: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(_SOURCE):
            return
        file = name.removeprefix(_SOURCE)
        if file in found or frame.f_code.co_name == "<module>" or getattr(busy, "now", False):
            return
        busy.now = True
        try:
            if wanted(frame, event, value):
                found[file] = frame.f_code.co_qualname
        finally:
            busy.now = False

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def in_hand(frame: FrameType, event: str, value: Any) -> bool:
    """A call whose arguments have the row, or a return of it."""
    if event == "return":
        return has_row(value)
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + (2 if code.co_flags & 0x0C else 0)
    return any(has_row(frame.f_locals.get(name)) for name in code.co_varnames[:count])


def crossings(files: Iterable[str]) -> int:
    """How many steps lead to another folder."""
    folders = [str(Path(file).parent) for file in files]
    return sum(a != b for a, b in itertools.pairwise(folders))


async def walk() -> tuple[dict[str, str], dict[str, str]]:
    """The files of a row, and those of a query that reads it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_kafka(Path(folder), installed_jars()) as broker,
        traced(in_hand) as row,
    ):
        broker.make_topic("events")
        async with database(f"file://{folder}/location") as opened:
            client = await connect(opened)
            await client.ask(f"create connection k to kafka (broker '{broker.bootstrap}')")
            await client.ask(
                "create source events from kafka connection k (topic 'events') format json"
            )
            await _until(client, "select count(*) from events", [(0,)])
            broker.send("events", [{"value": b'{"id": 1, "word": "%s"}' % _BYTES}])
            await _until(client, "select data->>'word' from events", [(MARKER,)])
            _asked.set(True)
            with traced(lambda *_: _asked.get()) as query:
                await client.ask("select data->>'word' from events")
    return row, query


async def _until(client: Conversation, query: str, wanted: Any) -> None:
    for _ in range(600):
        if await client.ask(query) == wanted:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{query} never had {wanted}")


def written(page: Path, files: dict[str, str], what: str) -> None:
    """Put the path into its section of a page."""
    head, _, rest = page.read_text().partition(_BEGIN)
    lines = [
        _BEGIN,
        "",
        f"{len(files)} files, {crossings(files)} crossings from one folder to another: {what}, in",
        "the order in which they are come to, each with the first function of it.",
        "",
        "| folder | file | function |",
        "|---|---|---|",
    ]
    before = ""
    for file, function in files.items():
        folder = str(Path(file).parent)
        shown = f"`{folder}`" if folder != before else ""
        lines.append(f"| {shown} | `{Path(file).name}` | `{function}` |")
        before = folder
    page.write_text("\n".join([head + lines[0], *lines[1:], "", _END]) + rest.partition(_END)[2])


if __name__ == "__main__":
    row, query = asyncio.run(walk())
    written(ROOT / "docs" / "life-of-a-row.md", row, "those whose functions have a row in hand")
    written(ROOT / "docs" / "life-of-a-query.md", query, "those that a SELECT of a row calls")
    for name, files in (("row", row), ("query", query)):
        print(name, len(files), "files", crossings(files), "crossings")
