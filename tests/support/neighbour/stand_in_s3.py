"""A stand-in S3 server of a few lines, whose faults a test chooses. It checks no signatures.

`ignores_condition`: takes If-None-Match and overwrites. `loses_answers`: does the put and closes
the connection without a word. `status` and `code`: answers everything with that error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from support.neighbour.listening import listening


class StandInS3(ThreadingHTTPServer):
    """One bucket in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.puts = 0
        self.ignores_condition = False
        self.loses_answers = False
        self.status = 0
        self.code = ""

    @property
    def url(self) -> str:
        endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        return (
            f"s3://bucket/prefix?endpoint={endpoint}&region=us-east-1&allow_http=true"
            "&access_key_id=me&secret_access_key=hush&timeout=2s&connect_timeout=1s"
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandInS3

    def do_PUT(self) -> None:
        value = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.puts += 1
        key = urlsplit(self.path).path
        conditional = "If-None-Match" in self.headers and not self.server.ignores_condition
        if conditional and key in self.server.objects:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        if not self.server.status:
            self.server.objects[key] = value
        if self.server.loses_answers:
            self.close_connection = True
            return
        self._answer(200)

    def do_GET(self) -> None:
        value = self.server.objects.get(urlsplit(self.path).path)
        if value is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._answer(200, value)

    do_HEAD = do_GET  # noqa: N815 - named by http.server

    def do_DELETE(self) -> None:
        self.server.objects.pop(urlsplit(self.path).path, None)
        self._answer(204)

    def _answer(self, status: int, body: bytes = b"") -> None:
        if self.server.status:
            status = self.server.status
            body = f"<Error><Code>{self.server.code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def stand_in_s3() -> Iterator[StandInS3]:
    """A running stand-in."""
    with listening(StandInS3()) as server:
        yield server
