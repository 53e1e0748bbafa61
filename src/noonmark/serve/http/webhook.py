"""POST /api/webhook/<source>: a body becomes a row, durable before the answer.

    200  it is durable            400  it cannot be read
    401  its signature is wrong   404  there is no such webhook

Who may post is the source's own matter: it may ask for a signature.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from starlette.responses import JSONResponse, Response

from noonmark.errors import InvalidPassword, NoonmarkError, StorageError, UndefinedTable
from noonmark.serve.http import shape


class Receiver(Protocol):
    """Who takes posts."""

    def receive(self, name: str, body: bytes, headers: Mapping[str, str]) -> Awaitable[None]:
        """Take one; done when it is durable."""


async def answer(
    receiver: Receiver, name: str, body: bytes, headers: Mapping[str, str]
) -> Response:
    """The answer to one post."""
    try:
        await receiver.receive(name, body, headers)
    except NoonmarkError as error:
        return JSONResponse({"error": shape.error(error)}, _status(error))
    return JSONResponse({})


def _status(error: NoonmarkError) -> int:
    match error:
        case UndefinedTable():
            return 404
        case InvalidPassword():
            return 401
        case StorageError():
            return 503
    return 400
