"""Passwords, kept as verifiers: SCRAM-SHA-256 (RFC 5802, 7677), as PostgreSQL stores them.

A verifier ``SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`` lets the server check a
client's proof and prove itself, and gives the password to nobody.

Law: ``matches(make_verifier(p, salt), q)`` iff p and q are one password after normalization.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import unicodedata
from dataclasses import dataclass

from noonmark.errors import InvalidValue

ITERATIONS = 4096
_PREFIX = "SCRAM-SHA-256$"


@dataclass(frozen=True)
class Verifier:
    """What is kept of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(raw).decode() for raw in (self.salt, self.stored_key, self.server_key)
        )
        return f"{_PREFIX}{self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """The verifier of a password; the salt is fresh for every password."""
    salted = hashlib.pbkdf2_hmac("sha256", normalized(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), server_key)


def parse_verifier(text: str) -> Verifier:
    """The verifier that a text spells.

    Raises:
        InvalidValue: the text is no verifier.
    """
    try:
        if not text.startswith(_PREFIX):
            raise ValueError("it does not begin with SCRAM-SHA-256$")
        count_salt, _, keys = text.removeprefix(_PREFIX).partition("$")
        count, _, salt = count_salt.partition(":")
        stored, _, server = keys.partition(":")
        raw = [base64.b64decode(part, validate=True) for part in (salt, stored, server)]
        if not 1 <= int(count) <= 1_000_000 or len(raw[1]) != 32 or len(raw[2]) != 32:
            raise ValueError("a key or the number of iterations is not possible")
    except (ValueError, binascii.Error) as error:
        raise InvalidValue("invalid SCRAM-SHA-256 verifier", detail=str(error)) from None
    return Verifier(int(count), raw[0], raw[1], raw[2])


def matches(verifier: Verifier, password: str) -> bool:
    """Whether the verifier is that password's."""
    made = make_verifier(password, verifier.salt, verifier.iterations)
    return hmac.compare_digest(made.stored_key, verifier.stored_key)


def normalized(password: str) -> bytes:
    """Two spellings of the same characters are one password."""
    return unicodedata.normalize("NFKC", password).encode()
