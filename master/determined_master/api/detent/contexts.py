"""Contexts by hash: check, upload and download."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse

from determined_master.api.dependencies import Anyone, BlobsDep, SettingsDep, User, agent
from determined_master.data_folder.blobs import Limits

router = APIRouter(prefix="/detent", tags=["detent"])


@router.head("/contexts/{digest}")
async def has_context(digest: str, _principal: Anyone, blobs: BlobsDep) -> Response:
    blobs.touch(digest)
    return Response()


@router.put("/contexts/{digest}")
async def put_context(
    digest: str, request: Request, _user: User, blobs: BlobsDep, settings: SettingsDep
) -> dict[str, Any]:
    # A tar has headers and padding beyond the content that the limit counts.
    limits = Limits(2 * settings.context_limit, settings.unpacked_limit)
    await blobs.receive(digest, request.stream(), limits)
    return {}


@router.get("/contexts/{digest}", dependencies=[Depends(agent)])
async def get_context(digest: str, blobs: BlobsDep) -> FileResponse:
    return FileResponse(blobs.path(digest), media_type="application/zstd")
