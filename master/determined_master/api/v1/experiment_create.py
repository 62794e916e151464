"""``POST /experiments``. Large bodies are spooled to disk and read by another process, not on the event loop."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from determined.context import from_files
from determined.errors import BadRequest, ContextError
from determined_master.api.dependencies import BlobsDep, CreatorDep, DatabaseDep, OffloaderDep, SettingsDep, User
from determined_master.api.json_body import JsonRoute, parse_json
from determined_master.api.queries.experiments import masked, show
from determined_master.api.request_normalizer import camel
from determined_master.api.schemas import experiments as schemas
from determined_master.blobs import Blobs
from determined_master.experiments.commands.create import Submission
from determined_master.offloading import Offloader
from determined_master.settings import Settings
from determined_master.trials.totals_queries import TrialTotals

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["experiments"])
SPOOL_ABOVE = 1_000_000
BODY_LIMIT = 256 * 1024 * 1024
_BODY = {"required": True, "content": {"application/json": {"schema": schemas.create_body_schema()}}}
"""OpenAPI entry of the body, which FastAPI does not see because the route reads a stream."""


@router.post("/experiments", openapi_extra={"requestBody": _BODY})
async def create_experiment(
    request: Request,
    user: User,
    blobs: BlobsDep,
    creator: CreatorDep,
    database: DatabaseDep,
    offloader: OffloaderDep,
    settings: SettingsDep,
) -> schemas.CreateAnswer:
    """``modelDefinition``: the official client's list of files; ``contextHash``: a context that was uploaded before."""
    try:
        body = schemas.CreateBody.model_validate(await _read(request, blobs, offloader, settings))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    submission = Submission(
        config=body.config,
        config_name=body.config_name or "config.yaml",
        context_hash=body.context_hash or None,
        parent_id=body.parent_id or None,
        project_id=body.project_id or None,
        activate=bool(body.activate),
        validate_only=bool(body.validate_only),
        template=body.template or None,
        unmanaged=bool(body.unmanaged),
    )
    row = await creator.submit(submission, user)
    if submission.validate_only:
        without_secrets = await masked(row)
        return schemas.CreateAnswer(
            experiment=schemas.experiment(row, user.username, TrialTotals([]), row.state.value, without_secrets),
            config=without_secrets.config,
        )
    async with database.read() as session:
        shown = (await show(session, [row]))[0]
    return schemas.CreateAnswer(experiment=shown, config=shown.config)


async def _read(request: Request, blobs: Blobs, offloader: Offloader, settings: Settings) -> dict[str, Any]:
    spooled = tempfile.SpooledTemporaryFile(max_size=SPOOL_ABOVE, dir=str(settings.data))  # noqa: SIM115
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
            return _digest(spooled.read(), blobs.folder, settings.context_limit)
        spooled.flush()
        path = f"/proc/{os.getpid()}/fd/{spooled.fileno()}"
        return await offloader.run(_digest_file, path, blobs.folder, settings.context_limit)


def _digest_file(path: str, blobs: Path, limit: int) -> dict[str, Any]:
    """Parses the body in a process of its own, so that it delays no other request."""
    return _digest(Path(path).read_bytes(), blobs, limit)


def _digest(data: bytes, blobs: Path, limit: int) -> dict[str, Any]:
    """Returns the body without its files, which are stored as one blob named by ``contextHash``."""
    body = parse_json(data or b"{}")
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
