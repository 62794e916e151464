"""Commands: launch, list, show, kill, change the priority."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from determined.states import TaskKind
from determined_master.api.context_body import NOTES, read_submission
from determined_master.api.dependencies import (
    Anyone,
    BlobsDep,
    CommandsDep,
    DatabaseDep,
    OffloaderDep,
    Owner,
    Read,
    SettingsDep,
    User,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.queries.commands import show
from determined_master.api.schemas import commands as schemas
from determined_master.api.schemas.base import BoundedInt, Wire
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of
from determined_master.commands.service import CommandSubmission, get
from determined_master.db.session import Database
from determined_master.tasks import repository
from determined_master.users import list_queries

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["commands"])
MAX_CONFIG_CHARACTERS = 1_000_000
_BODY = {"required": True, "content": {"application/json": {"schema": schemas.launch_body_schema()}}}
"""OpenAPI entry of the body, which FastAPI does not see because the route reads a stream."""
_ORDERS: dict[str, repository.Order] = {
    "SORT_BY_ID": "id",
    "SORT_BY_DESCRIPTION": "description",
    "SORT_BY_START_TIME": "created_at",
    "SORT_BY_WORKSPACE_ID": "workspace_id",
}


class CommandQuery(Wire):
    """The query of the list of commands."""

    users: Annotated[list[str], Query()] = []
    user_ids: Annotated[list[BoundedInt], Query()] = []
    workspace_id: BoundedInt = 0
    sort_by: str = ""
    order_by: str = ""
    offset: BoundedInt = 0
    limit: BoundedInt = 0


@router.post("/commands", openapi_extra={"requestBody": _BODY})
async def launch_command(
    request: Request,
    user: User,
    blobs: BlobsDep,
    commands: CommandsDep,
    database: DatabaseDep,
    offloader: OffloaderDep,
    settings: SettingsDep,
) -> schemas.LaunchAnswer:
    """``files``: the official client's list of files; ``contextHash``: a context that was uploaded before."""
    try:
        sent = await read_submission(request, "files", blobs, offloader, settings, rest_limit=MAX_CONFIG_CHARACTERS)
        body = schemas.LaunchBody.model_validate(sent)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    submitted = CommandSubmission(
        body.config or {},
        body.context_hash or None,
        body.workspace_id or None,
        body.template_name,
        context_notes=tuple(sent.get(NOTES, ())),
    )
    row = await commands.launch(submitted, user)
    return schemas.LaunchAnswer(command=await _shown(database, row.id), config=schemas.shown_config(row))


@router.get("/commands")
async def list_commands(
    _principal: Anyone,
    session: Read,
    asked: Annotated[CommandQuery, Query()],
) -> schemas.CommandsAnswer:
    owners = None
    if asked.users or asked.user_ids:
        owners = {*asked.user_ids, *await list_queries.ids_of_names(session, asked.users)}
    wanted = repository.Selection(TaskKind.COMMAND, owners, asked.workspace_id)
    by: repository.Order = column_of(asked.sort_by, _ORDERS, "created_at")
    descending = is_descending(asked.order_by)
    total = await repository.count(session, wanted)
    window = Window.of(asked.offset, asked.limit, total)
    rows = await repository.page(
        session, wanted, by=by, descending=descending, offset=window.offset, limit=window.limit
    )
    pagination = window.pagination(total, len(rows), asked.limit)
    return schemas.CommandsAnswer(commands=await show(session, rows), pagination=pagination)


@router.get("/commands/{command_id}")
async def get_command(command_id: str, _principal: Anyone, session: Read) -> schemas.CommandAnswer:
    row = await get(session, command_id)
    return schemas.CommandAnswer(command=(await show(session, [row]))[0], config=schemas.shown_config(row))


@router.post("/commands/{command_id}/kill")
async def kill_command(
    command_id: str, user: Owner, commands: CommandsDep, database: DatabaseDep
) -> schemas.ChangedCommand:
    await commands.kill(command_id, user)
    return schemas.ChangedCommand(command=await _shown(database, command_id))


@router.post("/commands/{command_id}/set_priority")
async def set_command_priority(
    command_id: str, body: schemas.PriorityBody, user: Owner, commands: CommandsDep, database: DatabaseDep
) -> schemas.ChangedCommand:
    await commands.set_priority(command_id, body.priority, user)
    return schemas.ChangedCommand(command=await _shown(database, command_id))


async def _shown(database: Database, command_id: str) -> schemas.Command:
    async with database.read() as session:
        return (await show(session, [await get(session, command_id)]))[0]
