"""Opens buckets by fsspec: s3 (s3fs), gcs (gcsfs) and azure (adlfs), imported only where such storage is configured."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from determined.errors import StorageError

MASKED = "********"
"""What the API shows in place of a key."""
LIBRARIES = {"s3": "s3fs", "gcs": "gcsfs", "azure": "adlfs"}
"""Type of ``checkpoint_storage`` → package that reads and writes it."""
UPLOADS = {"s3": {"chunksize": 64 << 20, "max_concurrency": 2}}
"""Type of ``checkpoint_storage`` → options of an upload. Parts larger than the library's take fewer requests; four
files at once hold at most half a gigabyte."""
_AZURE = ".blob.core.windows.net"
_CLASSES = {"s3": "S3FileSystem", "gcs": "GCSFileSystem", "azure": "AzureBlobFileSystem"}


@dataclass(frozen=True)
class Bucket:
    """A place in a bucket.

    Parameters:
        scheme: ``s3``, ``gcs`` or ``azure``.
        name: of the bucket, or of Azure's container.
        prefix: of all keys, without slashes at its ends; may be empty.
        endpoint: URL or account of the service; empty for the provider's own.
    """

    scheme: str
    name: str
    prefix: str
    endpoint: str = ""

    @property
    def root(self) -> str:
        return f"{self.name}/{self.prefix}" if self.prefix else self.name

    def __str__(self) -> str:
        return f"{self.scheme}://{self.root}"

    def holds(self, other: "Bucket") -> bool:
        """Returns True if ``other`` is this place or below it."""
        same = (self.scheme, self.name, self.endpoint) == (other.scheme, other.name, other.endpoint)
        return same and f"{other.prefix}/".startswith(f"{self.prefix}/" if self.prefix else "")


def bucket_of(config: Mapping[str, Any]) -> Bucket | None:
    """Returns the place that a ``checkpoint_storage`` section names; None if it names no bucket."""
    kind = config.get("type")
    if kind not in LIBRARIES:
        return None
    prefix = "/".join(part for part in str(config.get("prefix") or "").split("/") if part)
    if kind == "azure":
        endpoint = str(config.get("account_url") or _account(str(config.get("connection_string") or "")))
        return Bucket(kind, str(config["container"]), prefix, endpoint)
    return Bucket(kind, str(config["bucket"]), prefix, str(config.get("endpoint_url") or ""))


def bucket_at(url: str) -> Bucket:
    """Returns the place that a URL names: ``s3://bucket/prefix``, ``gcs://…`` or ``azure://container/prefix``.

    A service of its own is named behind it: ``s3://bucket/prefix?endpoint_url=http://minio:9000``, for Azure by
    ``account_url``.

    Raises:
        ValueError: the URL names no bucket.

    >>> str(bucket_at("s3://lab/runs"))
    's3://lab/runs'
    """
    parts = urlsplit(url)
    if parts.scheme not in LIBRARIES or not parts.netloc:
        raise ValueError(f"{url!r} is not a place in a bucket, such as s3://bucket/prefix")
    query = dict(parse_qsl(parts.query))
    found = bucket_of(
        {"type": parts.scheme, "bucket": parts.netloc, "container": parts.netloc, "prefix": parts.path, **query}
    )
    assert found is not None
    return found


def open_filesystem(config: Mapping[str, Any]) -> Any:  # noqa: ANN401  # fsspec is installed only where it is needed
    """Returns the fsspec file system of a ``checkpoint_storage`` section that names a bucket.

    Raises:
        StorageError: the library is not installed; the text names the command that installs it.
    """
    kind = str(config["type"])
    library = LIBRARIES[kind]
    try:
        made = getattr(importlib.import_module(library), _CLASSES[kind])
    except ImportError as error:
        raise StorageError(
            f"checkpoint_storage of type {kind} needs the package {library}, which the task's Python environment does "
            f"not have: run `pip install {library}` there, or add it to the context's startup-hook.sh ({error})"
        ) from None
    return made(skip_instance_cache=True, use_listings_cache=False, **_options(kind, config))


def _options(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in config.items() if value is not None and value != MASKED}
    if kind == "s3":
        names = {"access_key": "key", "secret_key": "secret", "endpoint_url": "endpoint_url"}
        options: dict[str, Any] = {name: given[ours] for ours, name in names.items() if ours in given}
        # Hashes of ours and of the transport find damage; older servers do not know the checksums of newer libraries.
        return options | {"config_kwargs": {"request_checksum_calculation": "when_required"}}
    if kind == "gcs":
        return {}
    if "connection_string" in given:
        return {"connection_string": given["connection_string"]}
    found = _account_of(str(given.get("account_url", "")))
    return found | ({"credential": given["credential"]} if "credential" in given else {"anon": False})


def _account(connection_string: str) -> str:
    """Returns the part of a connection string that says which account it is for."""
    parts: dict[str, str] = {}
    for part in connection_string.split(";"):
        name, _, value = part.partition("=")
        parts[name] = value
    return parts.get("BlobEndpoint") or parts.get("AccountName", "")


def _account_of(url: str) -> dict[str, str]:
    """Returns the account and, if it is not at Azure's own address, the host of an account's URL."""
    host = url.partition("//")[2].partition("/")[0]
    account = {"account_name": host.partition(".")[0]}
    return account if host.endswith(_AZURE) else {**account, "account_host": host}
