"""Checkpoints of 500 MB: upload to S3 against the libraries alone, and writing to a folder against torch.save."""

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import s3fs
import torch
from tests.support.object_stores import Store, s3_store

from bench.figure import Figure, paired
from determined.storage import Storage, from_config

FILES = 5
FILE_BYTES = 100 << 20


def figures(rounds: int = 7) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, s3_store() as store:
        folder = Path(name)
        files = _files(folder / "files")
        upload = from_config(store.config, {})
        references = {"s3fs": _by_s3fs(store, files), "boto3": _by_boto3(store, files)}
        for warm in (lambda: _uploaded(upload, files), *references.values()):
            warm()
        best = min(references, key=lambda name: references[name]())
        uploads, upload_words = paired(lambda: _uploaded(upload, files), references[best], rounds)
        tensors = [torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8) for path in files]
        shared = from_config({"type": "shared_fs", "host_path": name}, {"DET_SHARED_FS": str(folder / "shared")})
        saves, save_words = paired(
            lambda: _saved_by_us(shared, tensors), lambda: _saved_by_torch(folder / "plain", tensors), rounds
        )
    return [
        Figure(f"500 MB checkpoint to S3, over {best}", 1.2, uploads, note=f"{upload_words} s"),
        Figure("500 MB checkpoint to shared_fs, over torch.save and fsync", 1.2, saves, note=f"{save_words} s"),
    ]


def _files(folder: Path) -> list[Path]:
    folder.mkdir()
    paths = [folder / f"part-{number}" for number in range(FILES)]
    for path in paths:
        path.write_bytes(os.urandom(FILE_BYTES))
    return paths


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _uploaded(storage: Storage, files: list[Path]) -> float:
    """Returns the seconds of an upload by the storage, from the files of the task to the visible checkpoint."""
    uuid = str(uuid4())

    def upload() -> None:
        storage.upload(files[0].parent, uuid, [path.name for path in files], lambda folder: None)

    took = _timed(upload)
    storage.delete(uuid)
    return took


def _by_s3fs(store: Store, files: list[Path]) -> Callable[[], float]:
    created = s3fs.S3FileSystem(skip_instance_cache=True, **_keys(store))

    def put() -> float:
        took = _timed(lambda: created.put([str(path) for path in files], f"{store.config['bucket']}/plain/"))
        created.rm(f"{store.config['bucket']}/plain", recursive=True)
        return took

    return put


def _by_boto3(store: Store, files: list[Path]) -> Callable[[], float]:
    client = boto3.client(
        "s3",
        aws_access_key_id=store.config["access_key"],
        aws_secret_access_key=store.config["secret_key"],
        endpoint_url=store.config["endpoint_url"],
        region_name="us-east-1",
    )
    bucket = store.config["bucket"]

    def put() -> float:
        with ThreadPoolExecutor(FILES) as pool:
            return _timed(lambda: list(pool.map(lambda path: client.upload_file(str(path), bucket, path.name), files)))

    return put


def _keys(store: Store) -> dict[str, Any]:
    names = {"key": "access_key", "secret": "secret_key", "endpoint_url": "endpoint_url"}
    return {theirs: store.config[ours] for theirs, ours in names.items()}


def _saved_by_us(storage: Storage, tensors: list[torch.Tensor]) -> float:
    uuid = str(uuid4())

    def save() -> None:
        with storage.store_path(uuid, lambda folder: None) as folder:
            torch.save(tensors, folder / "state.pt")

    took = _timed(save)
    storage.delete(uuid)
    return took


def _saved_by_torch(folder: Path, tensors: list[torch.Tensor]) -> float:
    folder.mkdir(exist_ok=True)
    path = folder / "state.pt"

    def save() -> None:
        with path.open("wb") as file:
            torch.save(tensors, file)
            file.flush()
            os.fsync(file.fileno())

    took = _timed(save)
    path.unlink()
    return took


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
