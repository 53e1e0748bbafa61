"""Files by name, wherever they are: a folder, a glob, or a prefix in an object store.

A pattern is a path or URL. Up to the last ``/`` before the first wildcard it is the *base*; names
are relative to it. Without a wildcard, a folder stands for all files in it and below, and a file
for itself. ``*`` and ``?`` stay within a name, ``**`` crosses folders. Names that begin with ``.``
or ``_`` are not listed unless the pattern says so: that is where writers keep what is unfinished.

Errors: `SourceStalled` when the store does not answer; None for a file that is not there.

Where it runs: driver and executors; opened from the pattern, so that a task can open its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from noonmark.errors import ConfigError, SourceStalled
from noonmark.persist.impl.redact import redact
from noonmark.source.impl.file_guard import Guard, check_endpoint, place_of

_WILD = re.compile(r"[*?\[]")
_OBJECT_STORES = ("s3", "gs", "az")
ANYTHING = Guard()
_CLIENT = {"allow_http", "timeout", "connect_timeout"}


class Entry(NamedTuple):
    """One file of a listing. Equal versions, equal contents; others prove nothing."""

    name: str
    bytes: int
    version: str
    modified_ms: int


class FileStore(Protocol):
    """See the module. Calls block: the driver makes them in a thread."""

    @property
    def appends(self) -> bool:
        """Whether a file may still be growing when it is seen."""

    def list(self) -> list[Entry]:
        """Every file that the pattern stands for, by name."""

    def open(self, name: str) -> FileReader | None:
        """The file, as it is now; None when it is not there."""


class FileReader(Protocol):
    """One file, for a while."""

    def read(self, start: int, stop: int) -> bytes:
        """Bytes ``[start, stop)``, cut at the end."""

    def size(self) -> int:
        """How many bytes there are."""

    def close(self) -> None:
        """Let go of it."""


@dataclass(frozen=True)
class Pattern:
    """A base, and which names below it count."""

    base: str
    names: str

    @classmethod
    def of(cls, text: str) -> Pattern:
        """The base and names of a path without scheme."""
        wild = _WILD.search(text)
        cut = text.rfind("/", 0, wild.start() if wild else len(text)) + 1
        return cls(text[:cut], text[cut:])

    def matches(self, name: str) -> bool:
        """Whether a file of that name, relative to the base, is meant."""
        hidden = any(part[0] in "._" for part in name.split("/") if part)
        if hidden and not re.search(r"(^|/)[._]", self.names):
            return False
        if not _WILD.search(self.names):
            return self.names in {"", name} or name.startswith(f"{self.names}/")
        return re.fullmatch(_regex(self.names), name) is not None


def _regex(glob: str) -> str:
    parts = re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", glob)
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        wild.get(part) or (part.replace("[!", "[^") if part.startswith("[") else re.escape(part))
        for part in parts
    )


def open_store(url: str, guard: Guard = ANYTHING) -> FileStore:
    """The store that a pattern is in, of which `guard` lets one read."""
    scheme = urlsplit(url).scheme.lower() if "://" in url else ""
    if scheme in _OBJECT_STORES:
        return ObjectStore(url, guard)
    if scheme not in {"", "file"}:
        raise ConfigError(
            f"{redact(url)!r} names no files", hint="Give a path, file://, s3://, gs:// or az://."
        )
    path = unquote(urlsplit(url).path) if scheme else url
    if not path:
        raise ConfigError("a source of files needs a path")
    return LocalFiles(os.path.abspath(path) + ("/" if path.endswith("/") else ""), guard)


class LocalFiles:
    """Files of this machine, or of a disk that all machines share."""

    appends = True

    def __init__(self, path: str, guard: Guard = ANYTHING) -> None:
        self._guard = guard
        if not _WILD.search(path) and not path.endswith("/") and Path(path).is_dir():
            path += "/"
        self._pattern = Pattern.of(path)

    def list(self) -> list[Entry]:
        """See `FileStore.list`."""
        try:
            return sorted(self._walk(Path(self._pattern.base), ""))
        except OSError as error:
            raise SourceStalled(f"cannot list {self._pattern.base}", detail=str(error)) from error

    def _walk(self, folder: Path, prefix: str) -> Iterator[Entry]:
        deep = not self._pattern.names or "/" in self._pattern.names or "**" in self._pattern.names
        self._guard_folder(folder)
        with os.scandir(folder) as found:
            for item in found:
                name = prefix + item.name
                if item.is_dir():
                    if deep:
                        yield from self._walk(Path(item.path), f"{name}/")
                elif self._pattern.matches(name):
                    if item.is_symlink():
                        self._guard.check_file(item.path)
                    try:
                        stat = item.stat()
                    except FileNotFoundError:
                        continue  # it went while we looked
                    version = f"{stat.st_ino}.{stat.st_mtime_ns}.{stat.st_size}"
                    yield Entry(name, stat.st_size, version, stat.st_mtime_ns // 1_000_000)

    def check(self) -> None:
        """Refuse a pattern whose base is not to be read, or the one file that it is."""
        base, names = self._pattern.base, self._pattern.names
        if names and not _WILD.search(names):
            self._guard.check_file(base + names)
        else:
            self._guard_folder(Path(base))

    def _guard_folder(self, folder: Path) -> None:
        """A folder is looked into where one of its files may be read, or one below it."""
        if self._guard is not ANYTHING and self._pattern.names == "":
            self._guard.check(os.path.realpath(folder), str(folder))
        elif self._guard is not ANYTHING:
            self._guard.check_file(str(folder))

    def open(self, name: str) -> FileReader | None:
        """See `FileStore.open`. What is open stays what it was, whatever takes its name."""
        path = self._pattern.base + name
        try:
            # A pipe would be waited for.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceStalled(f"cannot open {name!r}", detail=str(error)) from error
        try:
            self._guard.check_opened(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        return LocalFile(descriptor)


class LocalFile:
    """See `FileReader`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, start: int, stop: int) -> bytes:
        """See `FileReader.read`."""
        pieces = []
        try:
            while start < stop and (piece := os.pread(self._descriptor, stop - start, start)):
                pieces.append(piece)
                start += len(piece)
        except OSError as error:
            raise SourceStalled("cannot read a file", detail=str(error)) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def size(self) -> int:
        """See `FileReader.size`."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """See `FileReader.close`."""
        os.close(self._descriptor)


class ObjectStore:
    """Objects under a prefix. An object is put whole: it never grows while it is looked at."""

    appends = False

    def __init__(self, url: str, guard: Guard = ANYTHING) -> None:
        from obstore.store import from_url

        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        client: dict[str, Any] = {name: options.pop(name) for name in _CLIENT & options.keys()}
        if "allow_http" in client:
            client["allow_http"] = client["allow_http"].lower() == "true"
        self._pattern = Pattern.of(unquote(parts.path).lstrip("/"))
        if guard is not ANYTHING:
            guard.check(place_of(f"{parts.scheme}://{parts.netloc}/{self._pattern.base}"))
            check_endpoint(options)
        try:
            bucket = f"{parts.scheme}://{parts.netloc}"
            opened: Any = from_url
            self._store = opened(bucket, config=options, client_options=client)
        except Exception as error:
            raise ConfigError(f"cannot open {bucket}", detail=str(error)) from error

    def list(self) -> list[Entry]:
        """See `FileStore.list`."""
        base, names = self._pattern.base, self._pattern.names
        prefix = base if _WILD.search(names) else base + names
        entries = []
        try:
            found = [
                each for chunk in self._store.list(prefix.rstrip("/") or None) for each in chunk
            ]
            if not found and names and prefix == base + names:
                found = [self._store.head(prefix)]
            for each in found:
                name = each["path"][len(base) :]
                if self._pattern.matches(name):
                    entries.append(_entry(name, each))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise SourceStalled(f"cannot list {base!r}", detail=_first_line(error)) from error
        return sorted(entries)

    def open(self, name: str) -> FileReader | None:
        """See `FileStore.open`."""
        path = self._pattern.base + name
        try:
            found = self._store.head(path)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise SourceStalled(f"cannot open {name!r}", detail=_first_line(error)) from error
        return _Object(self._store, path, int(found["size"]))


class _Object:
    """See `FileReader`."""

    def __init__(self, store: Any, path: str, size: int) -> None:
        self._store, self._path, self._size = store, path, size

    def read(self, start: int, stop: int) -> bytes:
        stop = min(stop, self._size)
        if start >= stop:
            return b""
        try:
            return bytes(self._store.get_range(self._path, start=start, end=stop))
        except FileNotFoundError:
            return b""
        except Exception as error:
            raise SourceStalled(f"cannot read {self._path!r}", detail=_first_line(error)) from error

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        pass


def _entry(name: str, found: Any) -> Entry:
    modified = int(found["last_modified"].timestamp() * 1000)
    version = f"{found.get('e_tag')}.{modified}.{found['size']}"
    return Entry(name, int(found["size"]), version, modified)


def _first_line(error: Exception) -> str:
    return re.sub(r"\?\S+", "?***", str(error).partition("\n")[0])
