"""A Blob in an object store: S3, Google Cloud Storage or Azure, through `obstore`.

A URL names the bucket and a prefix, ``s3://bucket/prefix?endpoint=...&region=...&allow_http=true``;
its options are those of obstore's store (``access_key_id``, ``account_name``, ...) and of its HTTP
client (``timeout``, ``connect_timeout``, ``allow_http``, ...). What the URL does not say comes from
the environment (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``), so that a URL without secrets opens on every
executor that has the environment.

**A conditional put is sent once.** A client that sends it again after a lost answer gets "exists"
for an object that is its own. So `put_if_absent` uses a client without retries: "exists" is then
about another writer, and a lost answer is `Indeterminate`. Gets, listings, deletes and plain puts
(an object is only ever put with the same bytes) may be repeated, and are.

**"Exists" is looked at.** A store may also say so while a delete or another put of the key is under
way (S3's 409). `put_if_absent` returns False only when the object is there; otherwise nobody has
the key yet, and the call is `Determinate`: try again.

Errors. No answer, or 5xx: `Indeterminate` for writes, `Determinate` for reads and for a conditional
put that found no connection. Forbidden, no such bucket, wrong credentials: `StorageUnfit`. A
listing is in key order and consistent, as all three stores promise.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import obstore.exceptions as failures
from obstore.store import AzureStore, GCSStore, S3Store

from noonmark.errors import ConfigError, Determinate, Indeterminate, StorageError, StorageUnfit
from noonmark.persist.impl.keys import check_key, check_prefix
from noonmark.persist.impl.redact import redact
from noonmark.persist.location import BlobEntry

SCHEMES = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}

_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "root_certificate",
    "timeout",
    "user_agent",
}
_CLIENT_DEFAULTS = {"connect_timeout": "5s", "timeout": "30s"}
_ONCE: dict[str, Any] = {"max_retries": 0}
_REPEAT: dict[str, Any] = {
    "max_retries": 5,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=50), "max_backoff": timedelta(seconds=5)},
}
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.I)
# The kind of error says so for most calls; for a listing only the text does.
_FORBIDDEN = re.compile(r"status: 40[13]\b")
_NOT_FOUND = re.compile(r"status: 404\b")


class ObjectStoreBlob:
    """See `noonmark.persist.location.Blob`. Opening one sends nothing."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = urlsplit(url)
        self._scheme, self._bucket = parts.scheme, parts.netloc
        self._prefix = parts.path.strip("/")
        if self._prefix:
            check_key(self._prefix)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self._account = options.get("account_name")
        self._store = _open(url, self._bucket, self._prefix, options, _REPEAT)
        self._store_once = _open(url, self._bucket, self._prefix, options, _ONCE)

    def __repr__(self) -> str:
        return f"ObjectStoreBlob({redact(self._url)!r})"

    @property
    def url(self) -> str:
        """See `Blob.url`. Has the secrets it was opened with: show it as `redact(url)`."""
        return self._url

    async def get(self, key: str) -> bytes | None:
        """See `Blob.get`."""
        try:
            result = await self._store.get_async(check_key(key))
            return bytes(await result.bytes_async())
        except (failures.BaseError, OSError) as error:
            self._refuse_unless_absent("get", key, error)
            return None

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """See `Blob.get_range`. A range that lies past the end costs a second call."""
        check_key(key)
        try:
            if length > 0:
                value = await self._store.get_range_async(key, start=start, length=length)
                return bytes(value)
        except FileNotFoundError as error:
            self._refuse_unless_absent("get", key, error)
            return None
        except failures.BaseError as error:
            # A store answers a range past the end with an error (416); so look how long it is.
            size = await self._size(key)
            if size is None or size <= start:
                return None if size is None else b""
            raise self._failed("get", key, error) from error
        return None if await self._size(key) is None else b""

    async def _size(self, key: str) -> int | None:
        try:
            return int((await self._store.head_async(key))["size"])
        except (failures.BaseError, OSError) as error:
            self._refuse_unless_absent("get", key, error)
            return None

    async def put(self, key: str, value: bytes) -> None:
        """See `Blob.put`."""
        try:
            await self._store.put_async(check_key(key), value)
        except (failures.BaseError, OSError) as error:
            raise self._failed("put", key, error, writes=True) from error

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """See `Blob.put_if_absent`."""
        try:
            await self._store_once.put_async(check_key(key), value, mode="create")
        except (failures.AlreadyExistsError, failures.PreconditionError) as error:
            if await self._size(key) is None:
                raise Determinate(
                    f"cannot put {key!r} in {redact(self._url)}: another call on it is under way",
                    key=key,
                ) from error
            return False
        except (failures.BaseError, OSError) as error:
            sent = "kind: Connect" not in str(error)
            raise self._failed("put", key, error, writes=sent) from error
        return True

    async def delete(self, key: str) -> None:
        """See `Blob.delete`."""
        try:
            await self._store.delete_async(check_key(key))
        except (failures.BaseError, OSError) as error:
            if not isinstance(error, FileNotFoundError) or _NO_BUCKET.search(str(error)):
                raise self._failed("delete", key, error, writes=True) from error

    async def list(self, prefix: str) -> list[BlobEntry]:
        """See `Blob.list`. The store lists by whole segments; the rest is cut here."""
        folder = check_prefix(prefix).rpartition("/")[0]
        entries = []
        try:
            async for chunk in self._store.list(folder or None, chunk_size=1000):
                for found in chunk:
                    if found["path"].startswith(prefix):
                        entries.append(BlobEntry(found["path"], found["size"]))
        except (failures.BaseError, OSError) as error:
            raise self._failed("list", prefix, error) from error
        return sorted(entries)

    def native_url(self, key: str) -> str | None:
        """See `Blob.native_url`: the schemes of Hadoop's connectors."""
        path = "/".join(filter(None, (self._prefix, check_key(key))))
        if self._scheme == "az":
            host = f"{self._account}.dfs.core.windows.net"
            return f"abfss://{self._bucket}@{host}/{path}" if self._account else None
        return f"{'s3a' if self._scheme == 's3' else self._scheme}://{self._bucket}/{path}"

    async def close(self) -> None:
        """See `Blob.close`. The client lets go of its connections by itself."""

    def _refuse_unless_absent(self, what: str, key: str, error: Exception) -> None:
        """Return when the error says that there is no such object; raise otherwise."""
        if not isinstance(error, FileNotFoundError) or _NO_BUCKET.search(str(error)):
            raise self._failed(what, key, error) from error

    def _failed(self, what: str, key: str, error: Exception, writes: bool = False) -> StorageError:
        kind: type[StorageError] = Indeterminate if writes else Determinate
        hint = None
        denied = (failures.PermissionDeniedError, failures.UnauthenticatedError)
        if isinstance(error, denied) or _FORBIDDEN.search(str(error)):
            kind = StorageUnfit
            hint = "Check the credentials, and that they may get, put, list and delete there."
        elif isinstance(error, FileNotFoundError) or _NOT_FOUND.search(str(error)):
            kind = StorageUnfit
            hint = "Make the bucket first, and check its name, region and endpoint."
        return kind(
            f"cannot {what} {key!r} in {redact(self._url)}",
            detail=_first_line(error),
            hint=hint,
            url=redact(self._url),
            key=key,
        )


def _open(
    url: str, bucket: str, prefix: str, options: dict[str, str], retry: dict[str, Any]
) -> Any:
    """An obstore store; `ConfigError` when the options cannot be."""
    scheme = urlsplit(url).scheme
    # One delete is one DELETE: not every server that speaks S3 has the call for many.
    config = {"disable_bulk_delete": "true"} if scheme == "s3" else {}
    config |= {name: value for name, value in options.items() if name not in _CLIENT_OPTIONS}
    client: dict[str, Any] = dict(_CLIENT_DEFAULTS)
    for name in _CLIENT_OPTIONS & options.keys():
        is_flag = name.startswith("allow_")
        client[name] = options[name].lower() == "true" if is_flag else options[name]
    if options.get("endpoint", "").startswith("http://") and not client.get("allow_http"):
        raise ConfigError(
            f"{redact(url)} has an endpoint without TLS", hint="Add &allow_http=true to allow it."
        )
    if not bucket:
        raise ConfigError(f"{redact(url)} names no bucket")
    try:
        return SCHEMES[scheme](
            bucket,
            prefix=prefix or None,
            config=config,
            client_options=client,
            retry_config=retry,
        )
    except (failures.BaseError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot open {redact(url)}", detail=_first_line(error)) from error


def _first_line(error: Exception) -> str:
    """What went wrong, without obstore's debug text and without signed query strings."""
    return re.sub(r"\?\S+", "?***", str(error).partition("\n")[0])
