"""Contract tests of every checkpoint storage, in folders and in real stores.

Checkpoints are stored whole or not at all, and are read unchanged.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.object_stores import STORES

from determined.errors import StorageError
from determined.storage import Storage, from_config
from determined.storage.base import HASHES_FILE, METADATA_FILE

U1, U2 = (f"00000000-0000-4000-8000-{number:012x}" for number in (1, 2))


@pytest.fixture(scope="module", params=["directory", "shared_fs", *STORES])
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    if request.param in STORES:
        with STORES[request.param]() as store:
            yield store.config
        return
    folder = str(tmp_path_factory.mktemp("store"))
    section = {"container_path": folder} if request.param == "directory" else {"host_path": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_SHARED_FS", folder)
        yield {"type": request.param, **section}


@pytest.fixture
def storage(config: dict[str, Any]) -> Iterator[Storage]:
    created = make_storage(config)
    yield created
    created.delete(U1)
    created.delete(U2)


def make_storage(config: dict[str, Any]) -> Storage:
    return from_config(config, {"DET_SHARED_FS": str(config.get("host_path"))})


def metadata(folder: Path) -> None:
    (folder / METADATA_FILE).write_text("{}")


def store(storage: Storage, uuid: str = U1, **files: str) -> None:
    with storage.store_path(uuid, metadata) as path:
        for name, text in files.items():
            (path / name).write_text(text)


def exists(storage: Storage, uuid: str = U1) -> bool:
    try:
        return bool(storage.resources(uuid))
    except StorageError as error:
        if f"checkpoint {uuid} is not in" not in str(error):
            raise
        return False


def test_uploaded_files_are_listed_and_downloaded_unchanged(storage: Storage, tmp_path: Path):
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "b é").write_text("bb")
    (source / "a").write_bytes(bytes(range(256)) * 50)
    storage.upload(source, U1, ["a", "sub/", "sub/b é"], metadata)
    assert storage.resources(U1) == {"a": 12800, "sub/": 0, "sub/b é": 2, METADATA_FILE: 2}
    storage.download(U1, tmp_path / "some", lambda name: name.startswith("sub"))
    assert (tmp_path / "some" / "sub" / "b é").read_text() == "bb"
    assert not (tmp_path / "some" / "a").exists()
    assert storage.read(U1, "a") == (source / "a").read_bytes()
    with storage.restore_path(U1) as path:
        assert (path / "a").read_bytes() == (source / "a").read_bytes()
    with storage.restore_path(U1, "a".__eq__) as path:
        assert sorted(each.name for each in path.iterdir()) == ["a"]


def test_an_upload_leaves_the_files_of_the_user_alone(storage: Storage, tmp_path: Path):
    (tmp_path / METADATA_FILE).write_text("mine")
    storage.upload(tmp_path, U1, [METADATA_FILE], metadata)
    assert (tmp_path / METADATA_FILE).read_text() == "mine"
    assert storage.read(U1, METADATA_FILE) == b"{}"


def test_a_checkpoint_is_invisible_until_it_is_complete(storage: Storage):
    with storage.store_path(U1, metadata) as path:
        (path / "a").write_text("a")
        assert not exists(storage)
    assert exists(storage)


def test_a_checkpoint_that_fails_leaves_nothing(storage: Storage):
    def fails(_folder: Path) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), storage.store_path(U1, fails) as path:
        (path / "a").write_text("a")
    assert not exists(storage)


def test_a_deleted_checkpoint_is_gone_and_may_be_deleted_again(storage: Storage):
    store(storage, a="1")
    store(storage, U2, a="2")
    storage.delete(U1)
    storage.delete(U1)
    assert not exists(storage)
    assert storage.read(U2, "a") == b"2"


def test_a_changed_byte_is_reported_with_the_name_of_its_file(storage: Storage, config: dict[str, Any], tmp_path: Path):
    store(storage, a="1", b="2")
    overwrite(storage, config, "b", b"3")
    for read in readers(storage, tmp_path):
        with pytest.raises(StorageError, match=f"checkpoint {U1} is damaged: b has changed since it was stored"):
            read()
    storage.download(U1, tmp_path / "other", "a".__eq__)
    overwrite(storage, config, HASHES_FILE, b"[]")
    with pytest.raises(StorageError, match=r"damaged: its \.hashes\.json cannot be read"):
        storage.download(U1, tmp_path / "other")


def readers(storage: Storage, tmp_path: Path) -> Iterator[Callable[[], None]]:
    yield lambda: storage.download(U1, tmp_path / "down")

    def restore() -> None:
        with storage.restore_path(U1):
            raise AssertionError("nobody may see a damaged checkpoint")

    yield restore


def test_a_checkpoint_of_the_official_library_without_hashes_is_downloaded(
    storage: Storage, config: dict[str, Any], tmp_path: Path
):
    store(storage, a="1")
    remove(storage, config, HASHES_FILE)
    storage.download(U1, tmp_path)
    assert (tmp_path / "a").read_text() == "1"


def test_a_probe_leaves_nothing(storage: Storage, config: dict[str, Any]):
    storage.probe()
    with opened(config) as (files, root):
        objects = [] if files is None else files.find(root)
        assert objects == []
        assert files is not None or list(Path(root).iterdir()) == []


@pytest.mark.parametrize("uuid", ["../other", "", "A" * 36, f"{U1}/.."])
def test_an_id_that_is_no_uuid_is_refused(storage: Storage, tmp_path: Path, uuid: str):
    for call in (
        lambda: storage.resources(uuid),
        lambda: storage.delete(uuid),
        lambda: storage.download(uuid, tmp_path),
        lambda: storage.store_path(uuid, metadata).__enter__(),
    ):
        with pytest.raises(StorageError, match="is not a checkpoint ID"):
            call()


@contextmanager
def opened(config: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yields fsspec's file system of the store (None for a folder) and the root of its checkpoints."""
    from determined.storage.bucket_access import bucket_of, open_filesystem

    bucket = bucket_of(config)
    if bucket is None:
        yield None, str(config.get("container_path") or config["host_path"])
    else:
        yield open_filesystem(config), bucket.root


def overwrite(storage: Storage, config: dict[str, Any], name: str, content: bytes) -> None:
    with opened(config) as (files, root):
        if files is None:
            Path(root, U1, name).write_bytes(content)
        else:
            files.pipe_file(f"{root}/{U1}/{name}", content)


def remove(storage: Storage, config: dict[str, Any], name: str) -> None:
    with opened(config) as (files, root):
        if files is None:
            Path(root, U1, name).unlink()
        else:
            files.rm([f"{root}/{U1}/{name}"])
