"""Which files a source may read: those below the operator's roots, and never the server's own.

Law (roots): a file is read when the place that it really is at, with every link and ``..``
resolved, is below a root. Without roots every place is. Law (never): what is below one of `never`
(the data, the key of secrets) is read by nobody, whatever the roots say. Law (opened): what is
checked is the file that was opened, not the name that it was opened by; and it is a regular file.

An object store is a place too: a root such as ``s3://bucket/prefix`` is for what is below it.

Where it runs: driver and executors.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from noonmark.errors import RefusedHere
from noonmark.source.outgoing import policy

_OBJECT_STORES = ("s3", "gs", "az")


@dataclass(frozen=True)
class Guard:
    """See the module. A root or place is a real path, or the URL of a bucket and prefix."""

    roots: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()

    @classmethod
    def of(cls, roots: str, never: tuple[str, ...]) -> Guard:
        """The guard of a list with commas; an empty one is no limit."""
        listed = tuple(place_of(each.strip()) for each in roots.split(",") if each.strip())
        return cls(listed or None, tuple(place_of(each) for each in never if each))

    def check(self, place: str, shown: str = "") -> None:
        """Refuse a place that may not be read.

        Raises:
            RefusedHere: it is not below a root, or it is the server's own.
        """
        for own in self.never:
            if _below(place, own) or _below(own, place):
                self._refuse(shown or place, "It is where the server keeps what is its own.")
        if self.roots is not None and not any(_below(place, root) for root in self.roots):
            self._refuse(shown or place, "It is below none of the places that may be read.")

    def check_file(self, path: str) -> None:
        """As `check`, for one file by any name that it has."""
        self._check_one(os.path.realpath(path), path)

    def check_opened(self, descriptor: int, path: str) -> None:
        """As `check`, for the file that was opened, whatever has its name now."""
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._refuse(path, "It is not a regular file.")
        try:
            real = os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")
        except OSError:
            real = os.path.realpath(path)
        self._check_one(real, path)

    def _check_one(self, real: str, path: str) -> None:
        for own in self.never:
            if _below(real, own):
                self._refuse(path, "It is where the server keeps what is its own.")
        if self.roots is not None and not any(_below(real, root) for root in self.roots):
            self._refuse(path, "It is below none of the places that may be read.")

    def _refuse(self, shown: str, why: str) -> None:
        raise RefusedHere(
            f'"{shown}" may not be read here',
            detail=why,
            hint="The operator of the server lists what may be read: --files-root.",
        )


def check_endpoint(options: dict[str, str]) -> None:
    """Refuse an object store at an address that may not be connected to (`source.outgoing`)."""
    for name, value in options.items():
        if "endpoint" in name.lower():
            host = urlsplit(value if "://" in value else f"//{value}").hostname
            if host:
                policy().addresses(host, urlsplit(value).port or 443)


def place_of(url: str) -> str:
    """Where a URL or path is: a real path, or bucket and prefix.

    >>> place_of("s3://Bucket/a/../b?region=x"), place_of("/usr/../etc/")
    ('s3://bucket/b', '/etc')
    """
    scheme = urlsplit(url).scheme.lower() if "://" in url else ""
    if scheme in _OBJECT_STORES:
        parts = urlsplit(url)
        path = os.path.normpath("/" + unquote(parts.path).lstrip("/"))
        return f"{scheme}://{parts.netloc.lower()}{path.rstrip('/')}"
    path = unquote(urlsplit(url).path) if scheme else url
    return os.path.realpath(path)


def _below(place: str, root: str) -> bool:
    """Whether a place is another, or inside of it."""
    return place == root or place.startswith(root.rstrip("/") + "/")
