"""SCRAM-SHA-256, the server's side, as two steps without input or output.

The client's first words bring its nonce; the server answers with its own, the salt and the number
of iterations. The client's last words bring a proof that only the password's owner can make for
these nonces; the server answers with a signature that only the verifier's owner can make.

A user without a verifier gets the same first answer from a verifier of the server's own making, and
fails at the end: the exchange does not say who exists.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from noonmark.adapter.password import ITERATIONS, Verifier
from noonmark.errors import InvalidPassword, ProtocolViolation, Unsupported

MECHANISM = "SCRAM-SHA-256"


def mock_verifier(user: str, secret: bytes) -> Verifier:
    """A verifier that no password has, the same each time the same user asks."""
    salt = hmac.digest(secret, user.encode(), "sha256")[:16]
    return Verifier(ITERATIONS, salt, b"", b"")


class Exchange:
    """One exchange: `challenge`, then `verify`."""

    def __init__(self, user: str, verifier: Verifier, nonce: str) -> None:
        self._user, self._verifier, self._nonce = user, verifier, nonce
        self._header = b""
        self._said = b""

    def challenge(self, client_first: bytes) -> bytes:
        """The server's answer to the client's first words."""
        text = _ascii(client_first)
        parts = text.split(",", 2)
        if len(parts) != 3:
            raise ProtocolViolation("malformed SCRAM message: the client's first words")
        binding, identity, bare = parts
        if binding.startswith("p="):
            raise Unsupported(
                "channel binding is not supported", hint="Use channel_binding=disable."
            )
        if binding not in ("n", "y"):
            raise ProtocolViolation("malformed SCRAM message: unexpected channel-binding flag")
        if identity:
            raise Unsupported("client uses authorization identity, but it is not supported")
        attributes = _attributes(bare)
        client_nonce = attributes.get("r", "")
        if "m" in attributes or not client_nonce:
            raise ProtocolViolation("malformed SCRAM message: no nonce, or an unknown extension")
        self._header = f"{binding},{identity},".encode()
        self._nonce = client_nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._said = f"{bare},{answer}".encode()
        return answer.encode()

    def verify(self, client_final: bytes) -> bytes:
        """The server's signature, if the proof is right.

        Raises:
            InvalidPassword: it is not, or the user has no password.
        """
        without_proof, _, proof_text = client_final.rpartition(b",p=")
        attributes = _attributes(_ascii(without_proof))
        try:
            binding = base64.b64decode(attributes.get("c", ""), validate=True)
            proof = base64.b64decode(proof_text, validate=True)
        except (ValueError, binascii.Error):
            raise ProtocolViolation("malformed SCRAM message: the client's last words") from None
        if binding != self._header or attributes.get("r") != self._nonce:
            raise ProtocolViolation("SCRAM channel binding or nonce does not match")
        message = self._said + b"," + without_proof
        signature = hmac.digest(self._verifier.stored_key, message, "sha256")
        if len(proof) != len(signature):
            raise ProtocolViolation("malformed SCRAM message: the proof's length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        found = hashlib.sha256(client_key).digest()
        if not hmac.compare_digest(found, self._verifier.stored_key):
            raise InvalidPassword(f'password authentication failed for user "{self._user}"')
        own = hmac.digest(self._verifier.server_key, message, "sha256")
        return b"v=" + base64.b64encode(own)


def _ascii(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("malformed SCRAM message: it is not text") from None


def _attributes(text: str) -> dict[str, str]:
    """The attributes of a message: a letter, ``=`` and a value, separated by commas."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}
