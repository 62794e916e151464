"""The ``outputs`` key: folders of the work folder that are kept from one attempt of a trial to the next."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BeforeValidator

from determined.config.model import kind_of, wrong
from determined.storage.base import HASHES_FILE, METADATA_FILE

MAX_FOLDERS = 16
MAX_FOLDER_BYTES = 1024


def _folders(value: object) -> object:
    """Returns the folders in their shortest form. None may contain another: its files would be kept twice."""
    if not isinstance(value, list):
        raise wrong("E201", f"expected a list of folders such as [runs/], got {kind_of(value)}")
    if len(value) > MAX_FOLDERS:
        raise wrong("E205", f"{len(value)} folders; at most {MAX_FOLDERS}")
    folders: list[str] = []
    for index, each in enumerate(value):
        folder = _folder(each, index)
        for other in folders:
            if folder.is_relative_to(other) or PurePosixPath(other).is_relative_to(folder):
                raise wrong("E302", f'"{folder}" and "{other}" contain each other; name the outer folder only', index)
        folders.append(str(folder))
    return folders


def _folder(value: object, index: int) -> PurePosixPath:
    if not isinstance(value, str):
        raise wrong("E201", f"expected the name of a folder, got {kind_of(value)}", index)
    folder = PurePosixPath(value.strip())
    if folder.is_absolute():
        raise wrong("E206", f'"{value}" is absolute; name a folder below the work folder, such as runs/', index)
    if ".." in folder.parts:
        raise wrong("E206", f'"{value}" leaves the work folder; name a folder below it, such as runs/', index)
    if not folder.parts:
        raise wrong("E206", f'"{value}" is the whole work folder; name a folder below it, such as runs/', index)
    if folder.parts[0] in (METADATA_FILE, HASHES_FILE):
        raise wrong("E206", f'"{value}" is the name of a file that each checkpoint has; use another name', index)
    if not value.isprintable() or len(value.encode()) > MAX_FOLDER_BYTES:
        raise wrong("E206", f"not the name of a folder: at most {MAX_FOLDER_BYTES} printable bytes", index)
    return folder


Outputs = Annotated[list[str], BeforeValidator(_folders)]
