"""A Confluent schema registry: schemas by number, and by subject.

Law (errors): a registry that does not answer, or answers with a failure of its own, is
`SourceStalled`: it may answer otherwise later. What it does not know, or will not take, is
`InvalidValue`: asking again would not help. No message has a password in it.

Where it runs: driver and executors.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import InvalidValue, SourceStalled

_TIMEOUT_S = 10.0
_TEXT_MAX = 300
_REFUSED = (409, 422)


@dataclass(frozen=True)
class Registry:
    """See the module. Its password is never shown."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)

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
        request = urllib.request.Request(self.url.rstrip("/") + path, data)
        if data is not None:
            request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        if self.username:
            pair = f"{self.username}:{self.password}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise _meaning(error, path) from None
        except (OSError, ValueError) as error:
            raise SourceStalled(f"the schema registry does not answer: {error}") from None


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
