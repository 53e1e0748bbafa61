"""Conversations of PostgreSQL's protocol as text: said to any server over a bare socket.

A file has cases. A case is a name after ``#``, and what a client sends, a message a line:

    Q text                            a simple query
    P statement | text [| oids]       Parse
    B portal | statement [| formats | values | formats]     Bind; NULL is \\N, 0x.. are bytes
    D S name, D P name                Describe
    E portal | rows                   Execute
    C S name, C P name                Close
    S                                 Sync
    H                                 Flush, and wait until the server wants rows
    d text, c, f reason               CopyData (with \\n and 0x..), CopyDone, CopyFail

Lines that begin with ``@name = one ;; two`` say the case once for each value; ``{name}`` is it.

An exchange is everything up to a message that the server answers at once: a query, Sync, or what
ends a COPY. Its answer is read up to ReadyForQuery, or to where the server waits for rows.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from support.serve.link import frame, start

#: Fields of errors and notices that are compared: severity, SQLSTATE, message, position.
_FIELDS = "SCMP"


@dataclass(frozen=True)
class Case:
    """One conversation: its name, and its lines."""

    name: str
    lines: tuple[str, ...]


def cases(path: Path) -> Iterator[Case]:
    """The cases of a file, each once for every value of its variables."""
    for block in re.split(r"^# ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, *lines = [line for line in block.splitlines() if line.strip()]
        given = [line[1:].split(" = ", 1) for line in lines if line.startswith("@")]
        said = [line for line in lines if not line.startswith("@")]
        choices = [[each.strip() for each in values.split(";;")] for _, values in given]
        for chosen in product(*choices):
            text, title = "\n".join(said), name
            for (variable, _), value in zip(given, chosen, strict=True):
                text = text.replace("{" + variable + "}", value)
                title += f", {value}"
            yield Case(title, tuple(text.splitlines()))


class Talk:
    """A connection that says a case and writes down the answers."""

    def __init__(self, host: str, port: int, user: str, database: str) -> None:
        self._socket = socket.create_connection((host, port), 20)
        self._socket.settimeout(20)
        self._rest = b""
        self._socket.sendall(start(user=user, database=database))
        self._answer("Z")

    def close(self) -> None:
        self._socket.close()

    def exchanges(self, case: Case) -> Iterator[tuple[str, list[str]]]:
        """What is sent, and what comes back."""
        waiting: list[str] = []
        for line, following in zip(case.lines, (*case.lines[1:], ""), strict=True):
            waiting.append(line)
            if line[0] in "QSH" or (line[0] in "cf" and following != "S"):
                self._socket.sendall(b"".join(map(message, waiting)))
                ends = "G" if line[0] == "H" else "ZGW"
                yield "\n".join(waiting), self._answer(ends)
                waiting = []

    def _answer(self, ends: str) -> list[str]:
        told: list[str] = []
        while True:
            kind, body = self._message()
            if kind not in "SK" or told:
                told.append(shown(kind, body))
            if kind in ends:
                return told

    def _message(self) -> tuple[str, bytes]:
        head = self._take(5)
        (length,) = struct.unpack(">i", head[1:])
        return chr(head[0]), self._take(length - 4)

    def _take(self, count: int) -> bytes:
        while len(self._rest) < count:
            more = self._socket.recv(65_536)
            if not more:
                raise ConnectionError(f"the server hung up; it had said {self._rest!r}")
            self._rest += more
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken


def message(line: str) -> bytes:
    """A line as the message that it stands for."""
    kind, _, rest = line.partition(" ")
    parts = [part.strip() for part in rest.split("|")]
    match kind:
        case "Q":
            return frame("Q", _bytes(rest) + b"\0")
        case "P":
            oids = [int(each) for each in (parts[2].split() if len(parts) > 2 else ())]
            body = struct.pack(f">h{len(oids)}i", len(oids), *oids)
            return frame("P", parts[0].encode() + b"\0" + _bytes(parts[1]) + b"\0" + body)
        case "B":
            return frame("B", _bind([*parts, "", "", "", ""]))
        case "D" | "C":
            what, _, name = rest.partition(" ")
            return frame(kind, what.encode() + name.strip().encode() + b"\0")
        case "E":
            return frame("E", parts[0].encode() + b"\0" + struct.pack(">i", int(parts[1])))
        case "d":
            return frame("d", _bytes(rest))
        case "f":
            return frame("f", rest.encode() + b"\0")
        case "S" | "H" | "c":
            return frame(kind)
    raise AssertionError(f"no message: {line}")


def _bind(parts: list[str]) -> bytes:
    formats = [int(each) for each in parts[2].split()]
    values = parts[3].split(",") if parts[3] else []
    results = [int(each) for each in parts[4].split()]
    body = f"{parts[0]}\0{parts[1]}\0".encode()
    body += struct.pack(f">h{len(formats)}hh", len(formats), *formats, len(values))
    for value in values:
        raw = _bytes(value.strip())
        body += struct.pack(">i", -1) if value.strip() == "\\N" else _sized(raw)
    return body + struct.pack(f">h{len(results)}h", len(results), *results)


def _sized(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


def _bytes(text: str) -> bytes:
    plain = text.replace("\\n", "\n").replace("\\t", "\t")
    parts = re.split(r"(0x[0-9a-f]+)", plain) if "0x" in plain else [plain]
    return b"".join(
        bytes.fromhex(part[2:]) if part.startswith("0x") else part.encode() for part in parts
    )


def shown(kind: str, body: bytes) -> str:
    """An answer as text; what two servers cannot have in common is left out."""
    match kind:
        case "T":
            return f"T {', '.join(_columns(body))}"
        case "D":
            return f"D {' | '.join(_values(body))}"
        case "E" | "N":
            found = {each[:1].decode(): each[1:].decode() for each in body.split(b"\0") if each}
            return f"{kind} {' | '.join(found.get(each, '-') for each in _FIELDS)}"
        case "t":
            (count,) = struct.unpack_from(">h", body)
            return f"t {struct.unpack_from(f'>{count}i', body, 2)}"
        case "G" | "H":
            return f"{kind} {body.hex()}"
        case "d" | "C" | "S" | "Z":
            return f"{kind} {body!r}"
    return kind


def _columns(body: bytes) -> Iterator[str]:
    (count,), at = struct.unpack_from(">h", body), 2
    for _ in range(count):
        end = body.index(b"\0", at)
        _, _, number, size, modifier, form = struct.unpack_from(">ihihih", body, end + 1)
        yield f"{body[at:end].decode()} {number} {size} {modifier} {form}"
        at = end + 19


def _values(body: bytes) -> Iterator[str]:
    (count,), at = struct.unpack_from(">h", body), 2
    for _ in range(count):
        (length,) = struct.unpack_from(">i", body, at)
        at += 4
        yield "NULL" if length < 0 else repr(body[at : at + length])
        at += max(length, 0)
