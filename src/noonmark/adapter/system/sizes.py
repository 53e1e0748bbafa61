"""How large things are: what is stored of a relation, of its indexes, of everything, and in words.

A size is that of the parts and small batches which the collection consists of now, compressed as
they are; what compaction has yet to remove is in it, what is garbage is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.item import Item
from noonmark.adapter.system.objects import Objects, ask
from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.sql.functions.function import Any_, Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Names of units, up to what each is used, and how many bits more than the one before it.
_BYTES_MAX = 10 * 1024
_UNITS = (("bytes", _BYTES_MAX, 0), ("kB", 20 * 1024 - 1, 9), ("MB", 20 * 1024 - 1, 10),
          ("GB", 20 * 1024 - 1, 10), ("TB", 20 * 1024 - 1, 10), ("PB", None, 10))  # fmt: skip


def in_words(size: int | Decimal) -> str:
    """A number of bytes in the largest unit that does not lose much, as pg_size_pretty does."""
    if isinstance(size, Decimal):
        return f"{size:f} bytes" if abs(size) < _BYTES_MAX else in_words(int(size))
    sign, rest, made = (-1 if size < 0 else 1), abs(size), ""
    for name, limit, bits in _UNITS:
        rest >>= bits
        if limit is None or rest < limit:
            shown = rest if name == "bytes" else (rest + 1) // 2
            made = f"{sign * shown} {name}"
            break
    return made


_SIZE = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_FACTORS = {"": 0, "b": 0, "bytes": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40, "pb": 50}


def in_bytes(text: str) -> int:
    """A size in words as a number of bytes, as pg_size_bytes reads it."""
    found = _SIZE.fullmatch(text)
    if found is None or found[2].lower() not in _FACTORS:
        raise InvalidArgument(
            f'invalid size: "{text}"',
            hint='Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".',
        )
    size = Decimal(found[1]) * (1 << _FACTORS[found[2].lower()])
    return int(size.to_integral_value(ROUND_HALF_UP))


class _Sizes:
    """The sizes of what a session sees."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session
        self._objects = Objects(session)

    def _stored(self, item: Item) -> int:
        state = self._session.database.client.state
        if item.collection not in state.names:
            return 0
        return sum(batch.bytes for batch in state.collection(item.collection).batches)

    def _indexes(self, item: Item) -> list[Item]:
        users = self._session.catalog.dependents([item.number])
        return [each for each in users if each.kind == "index"]

    def own(self, number: int) -> int | None:
        """Of the relation itself; None where there is none."""
        item = self._objects.item(number)
        return None if item is None else self._stored(item)

    def of_indexes(self, number: int) -> int | None:
        """Of its indexes."""
        item = self._objects.item(number)
        return None if item is None else sum(map(self._stored, self._indexes(item)))

    def total(self, number: int) -> int | None:
        """Of both."""
        own, indexes = self.own(number), self.of_indexes(number)
        return None if own is None or indexes is None else own + indexes

    def everything(self, _: object) -> int:
        """Of the location: there is one database."""
        collections = self._session.database.client.state.collections.values()
        return sum(batch.bytes for each in collections for batch in each.batches)

    def by_name(self, size: Callable[[int], int | None]) -> Callable[[str], int | None]:
        """The same, of a name."""
        return lambda name: size(self._objects.regclass(name))


def about_sizes(session: AdapterSession) -> list[Function]:
    """The functions; each takes a name, or what ::regclass gives."""
    sizes, big = _Sizes(session), t.BigInt()
    made = [
        ask("pg_database_size", (Any_.ANY,), big, sizes.everything),
        ask("pg_tablespace_size", (Any_.ANY,), big, sizes.everything),
        ask("pg_size_pretty", (t.BigInt,), t.Text(), in_words),
        ask("pg_size_pretty", (t.Numeric,), t.Text(), in_words),
        ask("pg_size_bytes", (t.Text,), big, in_bytes, fallible=True),
    ]
    for name, size in (
        ("pg_relation_size", sizes.own),
        ("pg_table_size", sizes.own),
        ("pg_indexes_size", sizes.of_indexes),
        ("pg_total_relation_size", sizes.total),
    ):
        made.append(ask(name, (t.Integer,), big, size))
        made.append(ask(name, (t.Text,), big, sizes.by_name(size), fallible=True))
    return made
