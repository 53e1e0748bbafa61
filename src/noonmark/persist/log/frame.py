"""The envelope of every log entry and rollup: magic, kind, format version, checksum, payload.

Layout, little-endian::

    0   4   magic b"NMRK"
    4   1   kind: b"E" entry, b"R" rollup
    5   1   zero
    6   2   format version
    8   8   xxh3_64 of (name, bytes 0..8, payload)
    16  ..  payload

The checksum covers the object's name, so an object that was copied over another one is found,
too. The version is readable before anything else is understood: a newer location is refused,
never misread.
"""

from __future__ import annotations

import struct

import xxhash

from noonmark.errors import Corrupt, NewerFormat

#: What this version writes. A reader reads every version up to its own.
FORMAT_VERSION = 2

ENTRY = b"E"
ROLLUP = b"R"

_HEAD = struct.Struct("<4scxH")
_SUM = struct.Struct("<Q")
_PAYLOAD_START = _HEAD.size + _SUM.size
_MAGIC = b"NMRK"


def seal_frame(name: str, kind: bytes, payload: bytes, version: int = FORMAT_VERSION) -> bytes:
    """Wrap `payload`, to be stored under `name`."""
    head = _HEAD.pack(_MAGIC, kind, version)
    return b"".join((head, _SUM.pack(_checksum(name, head, payload)), payload))


def open_frame(name: str, kind: bytes, data: bytes) -> bytes:
    """The payload of the object stored under `name`, or `Corrupt`, or `NewerFormat`."""
    if len(data) < _PAYLOAD_START:
        raise _corrupt(name, f"it has {len(data)} bytes, fewer than a header")
    head, payload = data[: _HEAD.size], data[_PAYLOAD_START:]
    magic, found_kind, version = _HEAD.unpack(head)
    (stored,) = _SUM.unpack(data[_HEAD.size : _PAYLOAD_START])
    computed = _checksum(name, head, payload)
    if stored != computed:
        raise _corrupt(name, f"its checksum is {computed:016x}, {stored:016x} was stored")
    if magic != _MAGIC or found_kind != kind:
        raise _corrupt(name, f"it is a {found_kind!r} object where {kind!r} belongs")
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f'stored object "{name}" has format version {version}',
            detail=f"This version of Noonmark reads formats up to {FORMAT_VERSION}.",
            hint="Upgrade Noonmark; nothing was changed.",
            object=name,
            found=version,
            supported=FORMAT_VERSION,
        )
    return payload


def _checksum(name: str, head: bytes, payload: bytes) -> int:
    digest = xxhash.xxh3_64(name.encode())
    digest.update(head)
    digest.update(payload)
    return int(digest.intdigest())


def _corrupt(name: str, why: str) -> Corrupt:
    return Corrupt(
        f'stored object "{name}" is corrupt',
        detail=f"Reading it back: {why}.",
        hint="Restore this object from a copy of the storage location.",
        object=name,
    )
