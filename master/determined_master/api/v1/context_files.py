"""Files of an experiment's context: the tree, and single files from the stored archive."""

import base64
import mimetypes
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from determined.context import ArchiveEntry, ContextError, entries, read
from determined.context.archive_reader import is_text
from determined.context.path_safety import TooManyMembers
from determined.errors import BadRequest, NotFound
from determined_master.api.dependencies import BlobsDep, DatabaseDep, ModelDefsDep, Read, Reader, UnpackerDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import RowId, Time, Wire
from determined_master.data_folder.blobs import Blobs
from determined_master.experiments import repository
from determined_master.offloading.threads import USER_FILES

router = APIRouter(route_class=JsonRoute, tags=["files"])
MAX_TEXT_BYTES = 1_000_000
MAX_THREAD_MEMBERS = 2_000
"""A larger tree is made in another process, so that neither its nodes nor its text hold up the event loop."""
TEXT = "text/plain; charset=utf-8"
BINARY = "application/octet-stream"
LINK = "inode/symlink"


class FileNode(Wire):
    path: str
    name: str
    is_dir: bool
    content_length: int
    content_type: str
    """Empty for a folder."""
    modified_time: Time | None
    files: list["FileNode"] = []


class FileTree(Wire):
    files: list[FileNode]


class FileBody(Wire):
    path: Annotated[str, Field(max_length=4096)] = ""


class FileAnswer(Wire):
    file: str
    """Content in base64."""


class ContextFile(Wire):
    path: str
    text: str
    """Empty for a binary file; at most 1 MB."""
    size: int
    """Size of the whole file in bytes."""
    binary: bool
    truncated: bool


@router.get("/api/v1/experiments/{experiment_id}/file_tree", response_model=FileTree)
async def file_tree(
    experiment_id: RowId, _principal: Reader, session: Read, blobs: BlobsDep, unpacker: UnpackerDep
) -> FileTree | Response:
    archive = await _archive(session, blobs, experiment_id)
    if archive is None:
        return FileTree(files=[])
    try:
        return await USER_FILES.run(_tree, archive, MAX_THREAD_MEMBERS)
    except TooManyMembers:
        pass
    try:
        text = await unpacker.run(_tree_json, archive)
    except ContextError as error:
        raise BadRequest(error.message) from None
    return Response(text, media_type="application/json")


@router.post("/api/v1/experiments/{experiment_id}/file")
async def model_def_file(
    experiment_id: RowId, body: FileBody, _principal: Reader, session: Read, blobs: BlobsDep
) -> FileAnswer:
    archive = await _archive(session, blobs, experiment_id)
    data, _size = await USER_FILES.run(_content, archive, body.path, None)
    return FileAnswer(file=await USER_FILES.run(lambda: base64.b64encode(data).decode()))


@router.get("/experiments/{experiment_id}/model_def", response_class=Response)
async def model_def_archive(
    experiment_id: RowId, _principal: Reader, database: DatabaseDep, model_defs: ModelDefsDep
) -> Response:
    """Returns the context as a tar.gz archive, as Determined does outside of its API."""
    async with database.read() as session:  # not open while the context is read
        digest = (await repository.get(session, experiment_id)).context_hash
    if digest is None:
        raise NotFound(f"experiment '{experiment_id}' has no model definition")
    text = await model_defs.as_tgz(digest)
    archive = await USER_FILES.run(base64.b64decode, text)
    name = f"experiment-{experiment_id}-model-def.tar.gz"
    return Response(
        archive, media_type="application/gzip", headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


@router.get("/detent/experiments/{experiment_id}/file")
async def context_file(
    experiment_id: RowId, path: Annotated[str, Query()], _principal: Reader, session: Read, blobs: BlobsDep
) -> ContextFile:
    archive = await _archive(session, blobs, experiment_id)
    data, size = await USER_FILES.run(_content, archive, path, MAX_TEXT_BYTES)
    binary = not is_text(data)
    # A character that is split by the limit is dropped.
    text = "" if binary else data.decode("utf-8", "ignore")
    return ContextFile(path=path, text=text, size=size, binary=binary, truncated=size > len(data))


async def _archive(session: Read, blobs: Blobs, experiment_id: int) -> Path | None:
    digest = (await repository.get(session, experiment_id)).context_hash
    return None if digest is None else blobs.path(digest)


def _content(archive: Path | None, path: str, most: int | None) -> tuple[bytes, int]:
    try:
        content = None if archive is None else read(archive, path, most)
    except ContextError as error:
        raise BadRequest(str(error)) from None
    if content is None:
        raise NotFound(f"the context has no file {path[:200]!r}")
    return content


def _tree_json(archive: Path) -> str:
    """As ``_tree``, of as many files as a context may hold. For a process of its own. Raises ContextError."""
    return _nested(entries(archive)).model_dump_json(by_alias=True)


def _tree(archive: Path, most: int) -> FileTree:
    """Raises TooManyMembers if there are more than ``most``."""
    try:
        return _nested(entries(archive, most))
    except TooManyMembers:
        raise
    except ContextError as error:
        raise BadRequest(str(error)) from None


def _nested(listed: list[ArchiveEntry]) -> FileTree:
    top: list[FileNode] = []
    folders: dict[str, list[FileNode]] = {"": top}
    for entry in listed:
        above, _, name = entry.path.rpartition("/")
        node = _node(entry, name)
        folders[above].append(node)
        folders[entry.path] = node.files
    return FileTree(files=top)


def _node(entry: ArchiveEntry, name: str) -> FileNode:
    return FileNode(
        path=_shown(entry.path),
        name=_shown(name),
        is_dir=entry.is_folder,
        content_length=entry.size,
        content_type=_type(entry, name),
        modified_time=_time(entry.mtime),
        files=[],
    )


def _shown(path: str) -> str:
    """Returns a path as text; an archive may have names that are not UTF-8."""
    return path.encode(errors="replace").decode()


def _time(seconds: float) -> datetime | None:
    """Returns None for a time that no calendar has: an archive may have any number."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def _type(entry: ArchiveEntry, name: str) -> str:
    if entry.is_folder:
        return ""
    if entry.link is not None:
        return LINK
    if entry.is_text:
        return TEXT
    return mimetypes.guess_type(name)[0] or BINARY
