"""``POST /experiments``: large bodies are spooled to disk and read by a process of their own, not on the event loop."""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from determined.context import from_files
from determined.errors import BadRequest, ContextError
from determined_master.api.dependencies import ServicesDep, User
from determined_master.api.queries.experiments import masked, show
from determined_master.api.request_normalizer import camel
from determined_master.api.schemas import experiments as schemas
from determined_master.blobs import Blobs
from determined_master.experiments.commands.create import Submission
from determined_master.services import Services

router = APIRouter(prefix="/api/v1", tags=["experiments"])
SPOOL_ABOVE = 1_000_000
BODY_LIMIT = 256 * 1024 * 1024


@router.post("/experiments", openapi_extra={"requestBody": {"content": {"application/json": {"schema": {}}}}})
async def create_experiment(request: Request, user: User, services: ServicesDep) -> schemas.CreateAnswer:
    """``modelDefinition`` is the official client's list of files; ``contextHash`` names a context sent before."""
    body = await _read(request, services)
    submission = Submission(
        config=_text(body, "config"),
        config_name=body.get("configName") or "config.yaml",
        context_hash=body.get("contextHash"),
        parent_id=body.get("parentId") or None,
        project_id=body.get("projectId") or None,
        activate=bool(body.get("activate")),
        validate_only=bool(body.get("validateOnly")),
        template=body.get("template") or None,
        unmanaged=bool(body.get("unmanaged")),
    )
    row = await services.creator.submit(submission, user)
    if submission.validate_only:
        without_secrets = await masked(row)
        return schemas.CreateAnswer(
            experiment=schemas.experiment(row, user.username, [], row.state.value, without_secrets),
            config=without_secrets.config,
        )
    async with services.database.read() as session:
        shown = (await show(session, [row]))[0]
    return schemas.CreateAnswer(experiment=shown, config=shown.config)


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRequest(f"{key} is missing")
    return value


async def _read(request: Request, services: Services) -> dict[str, Any]:
    spooled = tempfile.SpooledTemporaryFile(max_size=SPOOL_ABOVE, dir=str(services.settings.data))  # noqa: SIM115
    size = 0
    with spooled:
        async for chunk in request.stream():
            size += len(chunk)
            if size > BODY_LIMIT:
                raise BadRequest(f"the request is larger than {BODY_LIMIT} bytes")
            if size > SPOOL_ABOVE:
                await asyncio.to_thread(spooled.write, chunk)
            else:
                spooled.write(chunk)
        if size <= SPOOL_ABOVE:
            spooled.seek(0)
            return _digest(spooled.read(), services.blobs.folder, services.settings.context_limit)
        spooled.flush()
        path = f"/proc/{os.getpid()}/fd/{spooled.fileno()}"
        return await services.offload(_digest_file, path, services.blobs.folder, services.settings.context_limit)


def _digest_file(path: str, blobs: Path, limit: int) -> dict[str, Any]:
    """In a process of its own: what is read here holds nobody else."""
    return _digest(Path(path).read_bytes(), blobs, limit)


def _digest(data: bytes, blobs: Path, limit: int) -> dict[str, Any]:
    """The body without its files, which are stored as one blob named by ``contextHash``."""
    try:
        body = json.loads(data or b"{}")
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    body = {camel(str(key)): value for key, value in body.items()}
    files = body.pop("modelDefinition", None)
    if files and not body.get("validateOnly"):
        try:
            packed = from_files(files, limit=limit)
        except ContextError as error:
            raise BadRequest(error.message) from error
        body["contextHash"] = Blobs(blobs).keep_bytes(packed.data)
    return body
