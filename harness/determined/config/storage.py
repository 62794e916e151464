"""The ``checkpoint_storage`` section: where checkpoints are kept, and how many."""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from determined.config.model import Count, Model, wrong

Propagation = Literal["private", "rprivate", "shared", "rshared", "slave", "rslave"]
"""How mounts below a mounted folder reach its other side, in Docker's words."""


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise wrong("E206", f'"{value}" is not an absolute path')
    return value


def _no_way_up(value: str) -> str:
    if ".." in PurePosixPath(value).parts:
        raise wrong("E206", f'"{value}" leaves its folder with ".."')
    return value


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Prefix = Annotated[str, AfterValidator(_no_way_up)]
Name = Annotated[str, Field(min_length=1)]


class Storage(Model):
    """The fields of every storage: the number of checkpoints to keep after the end of an experiment."""

    save_experiment_best: Count = 0
    save_trial_best: Count = 1
    save_trial_latest: Count = 1


class SharedFs(Storage):
    """A folder that every agent can access."""

    type: Literal["shared_fs"] = "shared_fs"
    host_path: AbsolutePath
    storage_path: Prefix | None = None
    propagation: Propagation = "rprivate"
    checkpoint_path: str | None = None
    tensorboard_path: str | None = None
    container_path: str | None = None


class Directory(Storage):
    """A folder as the task sees it; the user is responsible for mounting it."""

    type: Literal["directory"] = "directory"
    container_path: AbsolutePath


class S3(Storage):
    """A bucket."""

    type: Literal["s3"] = "s3"
    bucket: Name
    access_key: str | None = None
    secret_key: str | None = None
    endpoint_url: str | None = None
    prefix: Prefix | None = None


class Gcs(Storage):
    """A bucket at Google, by application default credentials."""

    type: Literal["gcs"] = "gcs"
    bucket: Name
    prefix: Prefix | None = None


class Azure(Storage):
    """A blob container, by connection string or by account URL (``https://HOST``) and credential."""

    type: Literal["azure"] = "azure"
    container: Name
    connection_string: str | None = None
    account_url: str | None = None
    credential: str | None = None


AnyStorage = SharedFs | Directory | S3 | Gcs | Azure
STORAGES: dict[str, type[Storage]] = {
    "shared_fs": SharedFs,
    "directory": Directory,
    "s3": S3,
    "gcs": Gcs,
    "azure": Azure,
}
COMMON_FIELDS = frozenset(Storage.model_fields)
