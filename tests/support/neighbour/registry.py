"""A schema registry for tests, over HTTP on loopback: it keeps what is registered, in memory.

It answers as Confluent's does: one number for one schema wherever it is registered, 404 for what it
does not know, 409 for a schema whose fields are not those of the subject's newest, 401 for a wrong
password where it wants one.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

import support.neighbour.loopback  # noqa: F401 - they are on this machine


@dataclass
class RegistryServer:
    """What a registry knows. Any other number may be given to a schema with `give`."""

    url: str = ""
    password: str | None = None
    schemas: dict[int, str] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)

    def give(self, subject: str, schema: str) -> int:
        """The number of a schema under a subject."""
        known = {text: number for number, text in self.schemas.items()}
        number = known.get(schema, len(self.schemas) + 1)
        self.schemas[number] = schema
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, path: str, body: bytes | None) -> tuple[int, Any]:
        """Status and document."""
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["subjects"]:
                return 200, list(self.subjects)
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, {"schema": self.schemas[int(number)]}
            case ["subjects", subject, "versions", "latest"] if subject in self.subjects:
                return 200, {"schema": self.schemas[self.subjects[subject][-1]]}
            case ["subjects", subject, "versions"] if body is not None:
                return self._register(subject, json.loads(body)["schema"])
        return 404, {"error_code": 40401}

    def _register(self, subject: str, schema: str) -> tuple[int, Any]:
        newest = self.subjects.get(subject)
        if newest and _names(json.loads(self.schemas[newest[-1]])) != _names(json.loads(schema)):
            return 409, {"error_code": 409, "message": "incompatible"}
        return 200, {"id": self.give(subject, schema)}


def _names(schema: Any) -> set[str]:
    """The names of all fields and records, however deep."""
    match schema:
        case dict(found):
            return {str(found.get("name"))}.union(*map(_names, found.values()))
        case list(found):
            return set().union(*map(_names, found))
    return set()


@pytest.fixture
def registry_server() -> Iterator[RegistryServer]:
    """A registry that knows nothing."""
    state = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers["content-length"])))

        def _reply(self, body: bytes | None) -> None:
            status, document = state.answer(self.path, body)
            if state.password is not None:
                wanted = base64.b64encode(f"user:{state.password}".encode()).decode()
                if self.headers.get("authorization") != f"Basic {wanted}":
                    status, document = 401, {}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()
