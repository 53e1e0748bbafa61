"""URLs as people may see them: in errors, logs and reprs, without what is secret.

Law: no password, key or token of a URL is in its redacted form. User names and access key ids stay,
since without them a permission error cannot be understood.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

_SECRET = re.compile(r"secret|password|token|sas|account_key|credential|service_account_key", re.I)
_HIDDEN = "***"


def redact(url: str) -> str:
    """The URL with every secret replaced by stars.

    >>> redact("postgres://me:pw@host/db?location=a")
    'postgres://me:***@host/db?location=a'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition(':')[0]}:{_HIDDEN}"
    location = parts.netloc
    if "@" in location:
        user, _, host = location.rpartition("@")
        name, colon, _ = user.partition(":")
        location = f"{name}{colon}{_HIDDEN if colon else ''}@{host}"
    query = [
        (name, _HIDDEN if is_secret(name) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit(
        parts._replace(netloc=location, query=urlencode(query, safe="*/:@,", quote_via=quote))
    )


def is_secret(option: str) -> bool:
    """Whether the value of a URL option of that name must not be shown."""
    return _SECRET.search(option) is not None
