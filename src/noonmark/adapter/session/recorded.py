"""What is recorded of statements, and told of those that failed: nothing that is secret.

Law (rows): what an error shows of a row (its field `shows` says of which collection) is told to who
may read the table, as in PostgreSQL; to who may only write it, what `unshown` says.

Law (bounded): of a text, as much is looked at on the adapter's loop as is recorded of it,
`RECORDED_MAX` characters. What an error may repeat of a longer one is found in a thread.

Where it runs: the adapter's loop; what is long in a thread.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from noonmark import defect
from noonmark.adapter.aside import aside
from noonmark.adapter.catalog.privilege import has, is_superuser
from noonmark.errors import NoonmarkError, QueryCanceled, TooComplex
from noonmark.sql.redact import redacted, scrubbed

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: How much of a text is recorded; the rest is long, and says little more.
RECORDED_MAX = 4_096
#: Errors that say nothing of the statement: whoever sees them, sees no secret.
_SAYS_NOTHING = (QueryCanceled, TooComplex)
_redacted = lru_cache(maxsize=1_024)(redacted)


def recorded(text: str) -> str:
    """The text as others may see it: the beginning of a long one, without secrets."""
    return _redacted(text[:RECORDED_MAX])


def without_rows(session: AdapterSession, error: Exception) -> Exception:
    """What failed, without what it shows of rows that the session's role may not read."""
    if not isinstance(error, NoonmarkError) or "shows" not in error.fields:
        return error
    catalog, user = session.catalog, session.user
    item = catalog.of_collection(error.fields["shows"])
    reads = is_superuser(catalog, user) if item is None else has(catalog, user, "SELECT", item)
    if reads:
        return error
    fields = {name: value for name, value in error.fields.items() if name != "shows"}
    detail = fields.get("unshown")
    return type(error)(error.message, detail=detail, position=error.position, **fields)


async def without_secrets(error: Exception, text: str, *, parsed: bool = True) -> Exception:
    """What failed, without what the statement's text must not be recorded with."""
    if isinstance(error, _SAYS_NOTHING):
        return error
    if isinstance(error, NoonmarkError):
        return await aside(len(text), scrubbed, error, text, parsed=parsed)
    if await aside(len(text), redacted, text) == text:
        return error
    # Whatever an unforeseen exception says stays out of the log: only where it was raised.
    bare = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
    return defect.report(bare, "a statement with a secret")
