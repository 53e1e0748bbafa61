"""Types whose values are bytes in the order of the type: a file a family.

A new type is a class here (`rows.types.Coded` says what it tells) and one entry below. It is then
stored, sorted, compared, sent, read, cast from and to text, listed in the catalog and shown; what
functions and operators it has stands in a module of `noonmark.sql.functions`.
"""

from __future__ import annotations

from noonmark.rows.coded import bits, geometry, jsonpath, lsn, network, ranges, snapshots
from noonmark.rows.types import Coded

#: All of them.
CODED: tuple[type[Coded], ...] = (
    *bits.TYPES,
    *network.TYPES,
    *lsn.TYPES,
    *ranges.TYPES,
    *jsonpath.TYPES,
    *snapshots.TYPES,
    *geometry.TYPES,
)
