"""Messages between a database and its workers: a kind, a length, a pickle.

Session functions (`ir.asked.Ask`) are the session's own and stay there: a plan carries their names,
and a worker that comes upon one asks back. Both ends are the same program of one user: nothing else
can write to these sockets.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from noonmark.rows import types as t
from noonmark.sql.functions.function import Function

HEAD = struct.Struct("!cQ")

#: To a worker: the job; rows of an input, or the file of its table; that all inputs are there; the
#: answer to a question.
JOB, INPUT, TABLE, GO, ANSWER = b"J", b"I", b"T", b"G", b"A"
#: From a worker: rows; the end, with the file that has further rows; an error; a question. The end
#: and an error say whether the worker takes another job.
ROWS, DONE, ERROR, QUESTION = b"R", b"D", b"X", b"Q"


def frame(kind: bytes, body: bytes) -> bytes:
    """A message as it is sent."""
    return HEAD.pack(kind, len(body)) + body


def dumps(value: Any) -> bytes:
    """A value of plain parts."""
    return pickle.dumps(value, protocol=5)


def loads(body: bytes | memoryview) -> Any:
    """The value of a message from the other end."""
    return pickle.loads(body)


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Function):
            # One whose result depends on its arguments stays where its session is.
            result = value.result if isinstance(value.result, t.SqlType) else None
            return value.id, value.strict, result, value.volatile
        return None


def dump_job(job: Any) -> tuple[bytes, dict[str, Function]]:
    """A job, and the session's functions that it may ask for."""
    asked: dict[str, Function] = {}

    class Noting(_Pickler):
        def persistent_id(self, value: Any) -> Any:
            if isinstance(value, Function):
                asked[value.id] = value
            return super().persistent_id(value)

    sink = io.BytesIO()
    Noting(sink, protocol=5).dump(job)
    return sink.getvalue(), asked


@dataclass(frozen=True)
class Remote:
    """A session's function, in a worker."""

    id: str
    strict: bool
    result: t.SqlType | None
    ask: Callable[[str, tuple[Any, ...]], Any]
    volatile: bool = False

    def takes(self, _: tuple[t.SqlType, ...]) -> bool:
        """Yes: that was found where the call was planned."""
        return True

    def result_type(self, _: tuple[t.SqlType, ...]) -> t.SqlType:
        """The type of the result, for a plan that is written anew here."""
        if self.result is None:
            raise TypeError(f"the type of {self.id} is known where its session is")
        return self.result

    def fails(self, _: tuple[t.SqlType, ...]) -> bool:
        """The session may always refuse to answer."""
        return True

    def meaning(self, *values: Any) -> Any:
        """What the session answers."""
        return self.ask(self.id, values)


def load_job(body: bytes, ask: Callable[[str, tuple[Any, ...]], Any]) -> Any:
    """The job of a message; the session's functions in it ask back."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            name, strict, result, volatile = pid
            return Remote(name, strict, result, ask, volatile)

    return Unpickler(io.BytesIO(body)).load()
