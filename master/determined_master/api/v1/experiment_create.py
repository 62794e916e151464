"""``POST /experiments``."""

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from determined_master.api.context_body import NOTES, read_submission
from determined_master.api.dependencies import BlobsDep, CreatorDep, DatabaseDep, OffloaderDep, SettingsDep, User
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries.experiments import masked, show
from determined_master.api.schemas import experiments as schemas
from determined_master.experiments.commands.create import Submission
from determined_master.trials.totals_queries import TrialTotals

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["experiments"])
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
        sent = await read_submission(request, "modelDefinition", blobs, offloader, settings)
        body = schemas.CreateBody.model_validate(sent)
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
        context_notes=tuple(sent.get(NOTES, ())),
        code=body.code.state() if body.code is not None else None,
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
