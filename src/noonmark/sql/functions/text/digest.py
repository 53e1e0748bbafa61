"""Digests: sha2 as PostgreSQL has it, `digest` and `hmac` as pgcrypto does, comparison in one time.

`constant_time_eq` takes as long for a wrong value as for a right one, so that who guesses a
signature learns nothing from the clock.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function

_KINDS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def _kind(name: str) -> str:
    if name.lower() not in _KINDS:
        raise InvalidArgument(
            f'invalid hash algorithm "{name}"', hint=f"There are {', '.join(_KINDS)}."
        )
    return name.lower()


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _digest(data: str | bytes, kind: str) -> bytes:
    return hashlib.new(_kind(kind), _bytes(data)).digest()


def _hmac(data: str | bytes, key: str | bytes, kind: str) -> bytes:
    return hmac.digest(_bytes(key), _bytes(data), _kind(kind))


def _equal(one: str | bytes, other: str | bytes) -> bool:
    return hmac.compare_digest(_bytes(one), _bytes(other))


def _sha(kind: str) -> Callable[[bytes], bytes]:
    return lambda data: hashlib.new(kind, data).digest()


def _table() -> list[Function]:
    bytea = t.Bytea()
    made = [Function(kind, (t.Bytea,), bytea, _sha(kind)) for kind in _KINDS[2:]]
    for kind in (t.Text, t.Bytea):
        made += [
            Function("digest", (kind, t.Text), bytea, _digest, fallible=True),
            Function("hmac", (kind, kind, t.Text), bytea, _hmac, fallible=True),
            Function("constant_time_eq", (kind, kind), t.Boolean(), _equal),
        ]
    return made


TABLE = _table()
