"""GET / and /console/...: the console, a few files as they lie in the package.

Nothing is built or fetched from elsewhere: plain modules that the browser reads, and a policy that
lets it load and connect to this server alone. A page has no more rights than the person who opened
it: all it shows comes through ``/api/sql``.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@cache
def pages() -> dict[str, tuple[bytes, str, str]]:
    """Every file of the console: its bytes, its type and its tag."""
    found = {}
    for each in files(__package__).joinpath("pages").iterdir():
        kind = _TYPES.get(each.name.rpartition(".")[2])
        if kind is not None:
            body = each.read_bytes()
            found[each.name] = body, kind, f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return found


async def page(request: Request) -> Response:
    """One file; the first page where none is named."""
    known = pages().get(request.path_params.get("name", "index.html"))
    if known is None:
        return PlainTextResponse("there is no such page\n", 404)
    body, kind, tag = known
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=kind)
