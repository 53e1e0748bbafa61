"""Which keys have a row: what UPSERT must know to see that a second one comes.

Law: after the changes of all times up to t, `has(k)` iff the collection has a row of key k at t. A
key that would have two rows is an error, because no message could say it: the topic would lose the
first, and a later retraction of the second would take both.

A key is what it is in the topic: bytes, which are the same for keys that are equal in SQL
(`envelope`). It is kept as 64 bits of their hash, in some 70 bytes: two of a million keys meet with
a chance of one in ten million, and then the sink ends with an error, not with wrong rows.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import xxhash


class Keys:
    """See the module."""

    def __init__(self) -> None:
        self._present: set[int] = set()

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, int]]) -> Keys:
        """The keys of a snapshot, whose entries (key, diff) add up."""
        counts: Counter[int] = Counter()
        for key, diff in entries:
            counts[_hash(key)] += diff
        made = cls()
        made._present = {hashed for hashed, count in counts.items() if count > 0}
        return made

    def __len__(self) -> int:
        return len(self._present)

    def has(self, key: bytes) -> bool:
        """Whether the key has a row."""
        return _hash(key) in self._present

    def change(self, key: bytes, *, had: bool, has: bool) -> bool:
        """The key's row went (`had`), or came (`has`), or was replaced.

        Returns:
            False, and nothing is changed, where a row came and the key has one that stays.
        """
        hashed = _hash(key)
        if has and not had and hashed in self._present:
            return False
        (self._present.add if has else self._present.discard)(hashed)
        return True


def _hash(key: bytes) -> int:
    return int(xxhash.xxh3_64_intdigest(key))
