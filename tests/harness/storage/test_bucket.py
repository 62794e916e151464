"""Failures of a bucket: each raises an error with its place, and no half checkpoint is visible."""

import http.client
import json
import logging
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.object_stores import Store, s3_store

from determined.errors import StorageError
from determined.storage import bucket, from_config
from determined.storage.base import HASHES_FILE, METADATA_FILE
from determined.storage.bucket import BucketStorage
from determined.storage.bucket_access import Bucket, bucket_of, open_filesystem

pytestmark = pytest.mark.budget(15, "waits for a connection that is not answered")

U1 = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3_store() as created:
        yield created


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "RETRY_SECONDS", (0.01, 0.01))


@pytest.fixture
def storage(store: Store) -> Iterator[BucketStorage]:
    created = BucketStorage(store.config)
    yield created
    created.delete(U1)


def metadata(folder: Path) -> None:
    (folder / METADATA_FILE).write_text("{}")


def test_metadata_and_hashes_are_uploaded_after_all_other_files(
    storage: BucketStorage, monkeypatch: pytest.MonkeyPatch
):
    puts: list[str] = []
    real = storage.filesystem.put_file

    def put(path: str, key: str, **_: object) -> None:
        puts.append(key.rpartition("/")[2])
        real(path, key)

    monkeypatch.setattr(storage.filesystem, "put_file", put)
    with storage.store_path(U1, metadata) as folder:
        for number in range(20):
            (folder / f"part-{number}").write_text("x")
    assert puts[-2:] == [METADATA_FILE, HASHES_FILE]
    assert len(puts) == 22


@pytest.mark.parametrize("removed", [1, 100], ids=["in part", "whole"])
def test_a_removal_succeeds_although_objects_are_already_gone(
    store: Store, storage: BucketStorage, monkeypatch: pytest.MonkeyPatch, removed: int
):
    """gcsfs repeats a request whose answer was lost."""
    with storage.store_path(U1, metadata) as folder:
        for number in range(5):
            (folder / f"part-{number}").write_text("x")
    remove = storage.filesystem.rm

    def lose_the_answer(keys: list[str]) -> None:
        monkeypatch.setattr(storage.filesystem, "rm", remove)
        remove(keys[:removed])
        raise FileNotFoundError(keys)

    monkeypatch.setattr(storage.filesystem, "rm", lose_the_answer)
    storage.delete(U1)
    assert [key for key in store.objects() if U1 in key] == []


def test_a_killed_upload_is_no_checkpoint_and_can_be_deleted(store: Store):
    code = (
        "import os, sys, json, pathlib\n"
        "from determined.storage import from_config\n"
        "storage = from_config(json.loads(sys.argv[1]), {})\n"
        "real = storage.filesystem.put_file\n"
        "def put(path, key, **_):\n"
        "    os._exit(9) if key.endswith('.json') else real(path, key)\n"
        "storage.filesystem.put_file = put\n"
        f"with storage.store_path({U1!r}, lambda folder: (folder / 'metadata.json').write_text('1')) as folder:\n"
        "    (folder / 'a').write_text('a')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(store.config)], timeout=180, check=False)
    assert done.returncode == 9
    assert [key for key in store.objects() if U1 in key] == [f"checkpoints/lab/runs/{U1}/a"]
    with pytest.raises(StorageError, match=f"checkpoint {U1} is not in s3://checkpoints/lab/runs"):
        from_config(store.config, {}).resources(U1)
    from_config(store.config, {}).delete(U1)
    assert [key for key in store.objects() if U1 in key] == []


def test_only_the_file_whose_upload_failed_is_uploaded_again(
    storage: BucketStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    attempts: list[str] = []
    real = storage.filesystem.put_file

    def put(path: str, key: str, **_: object) -> None:
        name = key.rpartition("/")[2]
        attempts.append(name)
        if name == "b" and attempts.count("b") < 3:
            raise ConnectionResetError("connection reset by peer")
        real(path, key)

    monkeypatch.setattr(storage.filesystem, "put_file", put)
    with storage.store_path(U1, metadata) as folder:
        (folder / "a").write_text("a")
        (folder / "b").write_text("b")
    assert sorted(attempts) == sorted(["a", "b", "b", "b", METADATA_FILE, HASHES_FILE])
    assert storage.resources(U1) == {"a": 1, "b": 1, METADATA_FILE: 2}
    assert "cannot upload b to checkpoint storage s3://checkpoints/lab/runs: connection reset by peer" in caplog.text


@pytest.mark.parametrize("name", ["../../outside", "a/../../../outside", "/outside"])
def test_an_object_whose_key_leaves_the_checkpoint_is_refused(storage: BucketStorage, tmp_path: Path, name: str):
    with storage.store_path(U1, metadata) as folder:
        (folder / "a").write_text("a")
    storage.filesystem.call_s3("put_object", Bucket="checkpoints", Key=f"lab/runs/{U1}/{name}", Body=b"x")
    for read in (lambda: storage.download(U1, tmp_path / "in" / "here"), lambda: storage.resources(U1)):
        with pytest.raises(StorageError, match="has a file that leaves its folder"):
            read()
    assert not list(tmp_path.rglob("outside"))
    storage.filesystem.call_s3("delete_object", Bucket="checkpoints", Key=f"lab/runs/{U1}/{name}")


def test_the_probe_of_an_unreachable_service_names_its_address(store: Store):
    unreachable = from_config(store.config | {"endpoint_url": "http://127.0.0.1:9"}, {})
    with pytest.raises(
        StorageError, match=r"cannot write to checkpoint storage s3://checkpoints/lab/runs: .*127\.0\.0\.1:9"
    ):
        unreachable.probe()


def test_a_bucket_that_is_removed_during_an_upload_is_named():
    with s3_store("shortlived") as store:
        storage = BucketStorage(store.config)

        def remove_the_bucket(folder: Path) -> None:
            (folder / "a").write_text("a")
            store.filesystem().rmdir("shortlived")

        with pytest.raises(StorageError) as failed, storage.store_path(U1, remove_the_bucket):
            pass
    assert str(failed.value).startswith(
        "cannot upload a to checkpoint storage s3://shortlived/lab/runs: it does not exist"
    )
    assert str(failed.value).endswith("the last good checkpoint is kept")


def test_the_error_about_wrong_keys_shows_no_key(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with s3_store() as store:
        url = urlsplit(store.config["endpoint_url"])
        connection = http.client.HTTPConnection(str(url.hostname), url.port)
        connection.request("POST", "/moto-api/reset-auth", b"0")  # from now on the server checks keys
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises(
            StorageError, match=r"storage s3://checkpoints/lab/runs: it refuses these keys \("
        ) as failed:
            from_config(store.config, {}).probe()
    records = (record for record in caplog.records if record.name.startswith("determined"))
    log = "".join(record.getMessage() for record in records)
    assert store.config["secret_key"] not in f"{failed.value} {log}"


@pytest.mark.parametrize(
    ("kind", "library", "section"),
    [
        ("s3", "s3fs", {"bucket": "b"}),
        ("gcs", "gcsfs", {"bucket": "b"}),
        ("azure", "adlfs", {"container": "c", "connection_string": "AccountName=a;AccountKey=aw=="}),
    ],
)
def test_a_missing_storage_library_is_named_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch, kind: str, library: str, section: dict[str, Any]
):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(StorageError) as failed:
        from_config({"type": kind, **section}, {}).probe()
    assert f"run `pip install {library}` there" in str(failed.value)


@pytest.mark.parametrize(
    ("url", "account"),
    [
        ("https://lab.blob.core.windows.net/", {"account_name": "lab"}),
        ("https://lab.blob.core.chinacloudapi.cn", {"account_host": "lab.blob.core.chinacloudapi.cn"}),
        ("https://blobs.lab.example:10000", {"account_host": "blobs.lab.example:10000"}),
    ],
)
def test_the_host_of_an_azure_account_is_kept(monkeypatch: pytest.MonkeyPatch, url: str, account: dict[str, str]):
    made: dict[str, Any] = {}
    monkeypatch.setitem(
        sys.modules, "adlfs", types.SimpleNamespace(AzureBlobFileSystem=lambda **options: made.update(options))
    )
    open_filesystem({"type": "azure", "container": "c", "account_url": url, "credential": "k"})
    given = {name: value for name, value in made.items() if name in ("account_name", "account_host")}
    assert {"account_name": url[8:].split(".")[0], **account} == given


def test_storage_libraries_are_imported_only_when_they_are_used():
    code = (
        "import sys, determined, determined.core\n"
        "from determined.storage import from_config\n"
        "from_config({'type': 's3', 'bucket': 'b'}, {})\n"
        "assert not {'fsspec', 's3fs', 'aiobotocore', 'aiohttp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=180, env=dict(os.environ))


def test_masked_keys_are_not_sent(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENVIRON")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    masked = store.config | {"access_key": "********", "secret_key": "********"}
    storage = BucketStorage(masked)
    storage.probe()
    assert storage.filesystem.key is None


@pytest.mark.parametrize(
    ("outer", "inner", "is_below"),
    [
        ({"prefix": "lab"}, {"prefix": "lab/runs"}, True),
        ({"prefix": "/lab/"}, {"prefix": "lab"}, True),
        ({}, {"prefix": "lab"}, True),
        ({"prefix": "lab"}, {"prefix": "laboratory"}, False),
        ({"prefix": "lab"}, {}, False),
        ({"endpoint_url": "http://a"}, {"prefix": "lab"}, False),
    ],
)
def test_a_bucket_holds_another_one_with_a_prefix_below_its_own(
    outer: dict[str, str], inner: dict[str, str], is_below: bool
):
    buckets = [bucket_of({"type": "s3", "bucket": "b", **section}) for section in (outer, inner)]
    assert isinstance(buckets[0], Bucket)
    assert isinstance(buckets[1], Bucket)
    assert buckets[0].holds(buckets[1]) is is_below
