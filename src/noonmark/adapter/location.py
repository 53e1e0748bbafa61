"""Where the parts of a database are, inside of one location.

<data>           objects and the log of persist
<data>/oracle    the log of the timestamp oracle; beside another log, under a name of its own
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from noonmark.persist.impl.open import open_consensus
from noonmark.persist.location import Consensus

_ORACLE = "oracle"


def oracle_log(data_url: str, consensus_url: str | None) -> Consensus:
    """The log of the oracle of a location."""
    return open_consensus(oracle_url(consensus_url if consensus_url is not None else data_url))


def oracle_url(url: str) -> str:
    """The URL of the oracle's log beside the log at `url`.

    >>> oracle_url("data"), oracle_url("s3://bucket/place?region=r")
    ('data/oracle', 's3://bucket/place/oracle?region=r')
    >>> oracle_url("postgres://host/db?location=a")
    'postgres://host/db?location=a-oracle'
    """
    if url.startswith("memory:") or "://" not in url:
        return f"{url.rstrip('/')}/{_ORACLE}"
    parts = urlsplit(url)
    if parts.scheme in ("postgres", "postgresql"):
        options = dict(parse_qsl(parts.query))
        options["location"] = f"{options.get('location', 'noonmark')}-{_ORACLE}"
        return urlunsplit(parts._replace(query=urlencode(options)))
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{_ORACLE}"))
