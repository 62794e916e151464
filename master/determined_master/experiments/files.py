"""Files of an experiment's context: the tree and one file of it, read from the stored archive."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.wire.model import Time, Wire

router = APIRouter(tags=["files"])


class FileNode(Wire):
    path: str
    name: str
    is_dir: bool
    content_length: int
    content_type: str
    modified_time: Time | None
    files: list["FileNode"] = []


class FileTree(Wire):
    files: list[FileNode]


class FileBody(Wire):
    path: str = ""


class FileAnswer(Wire):
    file: str
    """In base64."""


class ContextFile(Wire):
    path: str
    text: str
    """Empty where it is binary; at most 1 MB of it."""
    size: int
    """Bytes of the whole file."""
    binary: bool
    truncated: bool


@router.get("/api/v1/experiments/{experiment_id}/file_tree")
async def file_tree(experiment_id: int, _principal: Anyone) -> FileTree:
    raise NotImplementedYet("this master does not offer GetModelDefTree yet")


@router.post("/api/v1/experiments/{experiment_id}/file")
async def model_def_file(experiment_id: int, body: FileBody, _principal: Anyone) -> FileAnswer:
    raise NotImplementedYet("this master does not offer GetModelDefFile yet")


@router.get("/detent/experiments/{experiment_id}/file")
async def context_file(experiment_id: int, path: Annotated[str, Query()], _principal: Anyone) -> ContextFile:
    raise NotImplementedYet("files of contexts come with the next commit")
