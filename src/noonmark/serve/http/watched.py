"""Who may see the figures of a server (GET /metrics).

With a token: who sends it (``Authorization: Bearer``). Without one: whoever is on this machine, and
superusers with their password. An address of their own (``--metrics``) takes them off the other
one, and lets in whoever reaches it, unless there is a token.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from noonmark.adapter.contract import Sessions
from noonmark.errors import InvalidPassword
from noonmark.serve.http.access import check, credentials
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.login import Rules


@dataclass(frozen=True)
class Watched:
    """See the module; `beside` says whether they are at this address at all."""

    figures: Figures
    token: str | None = None
    beside: bool = True
    alone: bool = False

    async def admit(
        self, sessions: Sessions, rules: Rules, headers: Mapping[str, str], peer: str
    ) -> None:
        """Let a request in, or not.

        Raises:
            NotAuthorized: it may not see them.
        """
        if self.token is not None:
            scheme, _, said = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(
                said.strip().encode(), self.token.encode()
            ):
                raise InvalidPassword("the token is not that of the figures")
            return
        if self.alone:
            return
        user, password = credentials(headers)
        if "authorization" not in headers:
            # Of this machine: figures are of no use to a page of another site, which cannot read.
            await check(sessions, rules, "", None, peer=peer, host=headers.get("host", ""))
            return
        await check(sessions, rules, user, password, peer=peer, host=headers.get("host", ""))
        session = await sessions.connect(user, user, {}, peer)
        try:
            if session.settings.get("is_superuser") != "on":
                raise InvalidPassword("the figures are for superusers")
        finally:
            await session.close()
