"""A Confluent schema registry: schemas by number, and by subject.

Law (errors): a registry that does not answer, or answers with a failure of its own, is
`SourceStalled`: it may answer otherwise later. What it does not know, or will not take, is
`InvalidValue`: asking again would not help. No message has a password in it.

Where it connects: to addresses that `source.outgoing` lets through, by http or https, after a
redirect too; a redirect to another host does not get the password. Proxies of the environment are
not used: they would connect where we did not look.

Where it runs: driver and executors.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import InvalidValue, SourceStalled
from noonmark.source.outgoing import check_url, policy_of

_TIMEOUT_S = 10.0
_TEXT_MAX = 300
_REFUSED = (409, 422)
_ANSWER_BYTES_MAX = 16 << 20


@dataclass(frozen=True)
class Registry:
    """See the module. Its password is never shown; `by_role` is whose words the URL is."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    by_role: bool = False

    def schema_of(self, number: int) -> str:
        """The schema of a number."""
        return str(self._ask(f"/schemas/ids/{number}")["schema"])

    def latest(self, subject: str) -> str:
        """The newest schema of a subject."""
        return str(self._ask(f"/subjects/{_quoted(subject)}/versions/latest")["schema"])

    def register(self, subject: str, schema: str) -> int:
        """The number of a schema under a subject: a new one, or that which it has. Idempotent."""
        return int(self._ask(f"/subjects/{_quoted(subject)}/versions", {"schema": schema})["id"])

    def validate(self) -> None:
        """Whether it answers, and lets us in."""
        self._ask("/subjects")

    def _ask(self, path: str, body: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        check_url(self.url, by_role=self.by_role)
        request = urllib.request.Request(self.url.rstrip("/") + path, data)
        if data is not None:
            request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        if self.username:
            pair = f"{self.username}:{self.password}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        try:
            with _opener(self.by_role).open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read(_ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            raise _meaning(error, path) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise SourceStalled(f"the schema registry does not answer: {_said(error)}") from None


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _meaning(error: urllib.error.HTTPError, path: str) -> InvalidValue | SourceStalled:
    with error:
        said = error.read(_TEXT_MAX).decode("utf-8", "replace")
    if error.code == 404:
        return InvalidValue(f"the schema registry has no {path.strip('/')}")
    if error.code in _REFUSED:
        return InvalidValue("the schema registry does not take the schema", detail=said)
    return SourceStalled(f"the schema registry answers {error.code}")


# -- connections that look where they go ---------------------------------------------------------


def _connected(host: str, port: int, timeout: float | None, by_role: bool) -> socket.socket:
    """A connection to an address of the host that was looked at."""
    last: OSError | None = None
    for address in policy_of(by_role).addresses(host, port):
        try:
            return socket.create_connection((address, port), timeout)
        except OSError as error:
            last = error
    raise last or OSError("it has no address")


class _Http(http.client.HTTPConnection):
    by_role = False

    def connect(self) -> None:
        """Connect to what may be connected to."""
        self.sock = _connected(self.host, self.port, self.timeout, self.by_role)


class _HttpOfRole(_Http):
    by_role = True


class _Https(http.client.HTTPSConnection):
    by_role = False

    def connect(self) -> None:
        """As `_Http`; the certificate is proved by the name."""
        plain = _connected(self.host, self.port, self.timeout, self.by_role)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)  # type: ignore[attr-defined]


class _HttpsOfRole(_Https):
    by_role = True


class _HttpHandler(urllib.request.HTTPHandler):
    def __init__(self, by_role: bool) -> None:
        super().__init__()
        self._kind = _HttpOfRole if by_role else _Http

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See urllib."""
        return self.do_open(self._kind, request)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, by_role: bool) -> None:
        super().__init__()
        self._kind = _HttpsOfRole if by_role else _Https

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """See urllib."""
        return self.do_open(self._kind, request)


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, by_role: bool) -> None:
        self._by_role = by_role

    def redirect_request(  # noqa: PLR0917 - urllib's
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Follow to what may be asked, without the password where that is somebody else."""
        check_url(newurl, by_role=self._by_role)
        made = super().redirect_request(req, fp, code, msg, headers, newurl)
        if made is not None and urllib.parse.urlsplit(newurl).netloc != req.host:
            made.remove_header("Authorization")
        return made


def _opener(by_role: bool) -> urllib.request.OpenerDirector:
    """What opens http and https, and nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        _HttpHandler(by_role),
        _HttpsHandler(by_role),
        _Redirects(by_role),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error) or type(error).__name__
