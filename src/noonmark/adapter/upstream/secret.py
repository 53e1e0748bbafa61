"""Secrets, sealed: what the location keeps of them opens only with a key that it does not have.

The key is NOONMARK_SECRET_KEY, or a file that only its user can read, made when the first secret
is: ``noonmark/secret.key`` in the user's folder of configuration. A location that is opened without
the key it was sealed with still works; what needs a secret stalls and says so.

Law: the sealed text reveals nothing but the secret's length, and does not open when it was changed.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.rights import Access
from noonmark.errors import ConfigError, UndefinedObject
from noonmark.sql.statement import statement as st

VARIABLE = "NOONMARK_SECRET_KEY"


def secret_of(access: Access, name: st.Name) -> Item:
    """The secret of that name, for who may use it."""
    found = access.find(name.parts)
    if found is None or found.kind != "secret":
        raise UndefinedObject(f'secret "{name}" does not exist', position=name.position)
    access.check("secret", found)
    return found


def seal(secret: str, environ: Mapping[str, str] = os.environ) -> str:
    """The secret as it may be stored."""
    from cryptography.fernet import Fernet  # when one is used: servers start without

    return Fernet(_key(environ, make=True)).encrypt(secret.encode()).decode()


def unseal(sealed: str, name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The secret.

    Raises:
        ConfigError: this process does not have the key; `name` is the secret's, for the message.
    """
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return Fernet(_key(environ, make=False)).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise ConfigError(
            f'secret "{name}" was sealed with another key',
            hint=f"Set {VARIABLE} to the key, or bring the file {key_file(environ)}.",
        ) from None


def _key(environ: Mapping[str, str], *, make: bool) -> bytes:
    given = environ.get(VARIABLE)
    if given:
        return base64.urlsafe_b64encode(hashlib.sha256(given.encode()).digest())
    file = key_file(environ)
    if not file.exists():
        if not make:
            raise ConfigError(
                "there is no key to open secrets with",
                hint=f"Set {VARIABLE}, or bring the file {file}.",
            )
        _make(file)
    return file.read_bytes().strip()


def _make(file: Path) -> None:
    """A new key, whole or not at all, and the first one if two are made at once."""
    from cryptography.fernet import Fernet

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(Fernet.generate_key())
        opened.flush()
        os.fsync(opened.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def key_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the key is, unless the environment has it."""
    home = environ.get("XDG_CONFIG_HOME") or str(
        Path(environ.get("HOME", "~")).expanduser() / ".config"
    )
    return Path(home) / "noonmark" / "secret.key"
