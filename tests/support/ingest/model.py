"""What an ingestion must come to, in plain Python: every record at its time, then its envelope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from noonmark.tvc import Partition
from support.ingest.upstream import Message, Upstream

Known = dict[Partition, int] | None  # None: everything, for ever


@dataclass
class Model:
    """The contents of all outputs and of the errors, as time goes on.

    Args:
        upstream: the records.
        bindings: how far upstream was complete at each time that was bound.
    """

    upstream: Upstream
    bindings: Mapping[int, Known]
    rows: list[Counter[Any]] = field(init=False)
    #: Output, partition, offset, key and value of each; the reason is for people.
    errors: Counter[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [Counter() for _ in self.upstream.outputs]
        self.errors = Counter()
        self._states: dict[tuple[int, int], Any] = {}
        self._todo = sorted(self._records(), key=lambda each: each[:4], reverse=True)

    def _records(self) -> list[tuple[int, Partition, int, int, Message]]:
        found = []
        for partition, log in self.upstream.messages.items():
            for offset, messages in log.items():
                time = self.time_of(partition, offset)
                if time is not None:
                    found += [(time, partition, offset, at, m) for at, m in enumerate(messages)]
        return found

    def time_of(self, partition: Partition, offset: int) -> int | None:
        """The first time at which the record was complete: the definition of reclocking."""
        for time, known in sorted(self.bindings.items()):
            if known is None or offset < known.get(partition, 0):
                return time
        return None

    def advance(self, time: int) -> None:
        """Go on to a later time."""
        while self._todo and self._todo[-1][0] <= time:
            _, partition, offset, _, message = self._todo.pop()
            self._apply(partition, offset, message)
        for count in (*self.rows, self.errors):
            for row in [row for row, there in count.items() if not there]:
                del count[row]

    def _apply(self, partition: Partition, offset: int, message: Message) -> None:
        output, kind = message.output, self.upstream.outputs[message.output]
        if kind == "typed":
            self.rows[output][message.row] += message.diff
            return
        error = (f"out{output}", str(partition), offset, None, message.value)
        if kind == "NONE":
            if message.row is None:
                self.errors[error] += 1
            else:
                self.rows[output][message.row] += 1
            return
        if message.key == b"{":
            # Bytes that could not be read are those of the value, also when it was the key.
            self.errors[error] += 1
            return
        self._upsert(output, error, message)

    def _upsert(self, output: int, error: Any, message: Message) -> None:
        key = int((message.key or b"").split(b":")[1].rstrip(b"}"))
        before = self._states.pop((output, key), None)
        if before is not None:
            (self.errors if len(before) > 2 else self.rows[output])[before] -= 1
        if message.row is not None:
            self._states[output, key] = message.row
            self.rows[output][message.row] += 1
        elif message.value is not None:
            error = (*error[:3], f"({key})", message.value)
            self._states[output, key] = error
            self.errors[error] += 1
