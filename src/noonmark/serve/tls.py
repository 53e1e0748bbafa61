"""The certificate that a server shows."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from noonmark.errors import ConfigError


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, as PEM files; the key may be in the certificate's file."""

    certificate: Path
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """What the event loop needs.

        Raises:
            ConfigError: the files cannot be read, or do not belong together.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f'certificate "{self.certificate}" cannot be used', detail=str(error)
            ) from error
        return context
