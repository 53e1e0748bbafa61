"""What both ends of a line know: a batch that was sent once is a number in what is sent after it.

A work has the batches of every collection that it may look into, small ones with all of their
bytes. From one tick to the next these are the same, and a few more: they were nearly all of what
went to a resident, some megabytes in every tick.

Law: ``Told().loads(Telling().dumps(m))`` is m, for all messages of one line in their order.
Law (bounded): both ends forget the same batches, those that were not named for longest: they do the
same steps in the same order. What they know took `BYTES_MAX` on the way, and the last batch.

Where it runs: `Telling` on the driver, `Told` on executors; one thread at a time.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from noonmark.persist.log.state import Batch

#: The size that what is known may reach, as it was sent.
BYTES_MAX = 64 << 20


class _Names:
    """What is known, by number; what was not named for longest is forgotten first."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Batch, int]] = {}
        self._size = 0

    def named(self, number: int) -> Batch:
        """What has a number."""
        self._known[number] = found = self._known.pop(number)
        return found[0]

    def learn(self, number: int, batch: Batch, size: int) -> list[Batch]:
        """Know one more; gives what is forgotten for it."""
        forgotten = []
        self._known[number] = batch, size
        self._size += size
        while self._size > BYTES_MAX and len(self._known) > 1:
            gone, its_size = self._known.pop(next(iter(self._known)))
            self._size -= its_size
            forgotten.append(gone)
        return forgotten


class Telling:
    """The end that sends."""

    def __init__(self) -> None:
        self._names = _Names()
        #: By identity: a batch that is known is kept, so nothing else has its place in memory.
        self._numbers: dict[int, int] = {}
        self._next = 0

    def dumps(self, message: object) -> bytes:
        """A message as it is sent. What fails leaves the ends apart: the line is of no use then."""
        out = io.BytesIO()
        _Pickler(out, self).dump(message)
        return out.getvalue()

    def said(self, batch: Batch) -> int | tuple[int, bytes]:
        """What stands for a batch in a message."""
        number = self._numbers.get(id(batch))
        if number is not None:
            self._names.named(number)
            return number
        self._next, number = self._next + 1, self._next
        packed = pickle.dumps(batch)
        self._numbers[id(batch)] = number
        for gone in self._names.learn(number, batch, len(packed)):
            del self._numbers[id(gone)]
        return number, packed


class Told:
    """The end that receives."""

    def __init__(self) -> None:
        self._names = _Names()

    def loads(self, data: bytes) -> Any:
        """The message."""
        return _Unpickler(io.BytesIO(data), self).load()

    def found(self, said: int | tuple[int, bytes]) -> Batch:
        """The batch that is meant."""
        if isinstance(said, int):
            return self._names.named(said)
        number, packed = said
        batch: Batch = pickle.loads(packed)
        self._names.learn(number, batch, len(packed))
        return batch


class _Pickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, telling: Telling) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._telling = telling

    def persistent_id(self, value: Any) -> int | tuple[int, bytes] | None:
        return self._telling.said(value) if type(value) is Batch else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, told: Told) -> None:
        super().__init__(data)
        self._told = told

    def persistent_load(self, said: Any) -> Batch:
        return self._told.found(said)
