"""Commands and services: launch, list, show, kill, change the priority; the same routes for each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from determined_master.api.context_body import NOTES, read_submission
from determined_master.api.dependencies import (
    Anyone,
    AuthorizationDep,
    BlobsDep,
    ClockDep,
    CommandsDep,
    DatabaseDep,
    OffloaderDep,
    Owner,
    Read,
    SecretsDep,
    SettingsDep,
    StreamsDep,
    User,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.queries.commands import Viewer, show
from determined_master.api.schemas import commands as schemas
from determined_master.api.schemas.base import BoundedInt, Wire
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of
from determined_master.auth.principal import Principal
from determined_master.commands.kinds import COMMAND, SHELL, LaunchedKind
from determined_master.commands.service import CommandSubmission, get
from determined_master.db.session import Database
from determined_master.tasks import repository
from determined_master.users import list_queries

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
    """The query of a list."""

    users: Annotated[list[str], Query()] = []
    user_ids: Annotated[list[BoundedInt], Query()] = []
    workspace_id: BoundedInt = 0
    sort_by: str = ""
    order_by: str = ""
    offset: BoundedInt = 0
    limit: BoundedInt = 0


@dataclass(frozen=True)
class Shown:
    """How the API shows the tasks of one kind: the name of one and of several is also a key of the answers."""

    kind: LaunchedKind
    launched: type[Wire]
    one: type[Wire]
    several: type[Wire]
    changed: type[Wire]


SHOWN = (
    Shown(COMMAND, schemas.LaunchAnswer, schemas.CommandAnswer, schemas.CommandsAnswer, schemas.ChangedCommand),
    Shown(SHELL, schemas.LaunchedShell, schemas.ShellAnswer, schemas.ShellsAnswer, schemas.ChangedShell),
)


async def _viewers(
    authorization: AuthorizationDep, secrets: SecretsDep, streams: StreamsDep, clock: ClockDep
) -> Callable[[Principal], Viewer]:
    return lambda principal: Viewer(
        lambda owner: authorization.may_enter(principal, owner), secrets, streams.uses, clock.now()
    )


ViewerDep = Annotated[Callable[[Principal], Viewer], Depends(_viewers)]


def routes_of(shown: Shown) -> APIRouter:
    """Returns the routes of one kind."""
    kind, noun, plural = shown.kind, shown.kind.noun, f"{shown.kind.noun}s"
    router = APIRouter(route_class=JsonRoute, prefix=f"/api/v1/{plural}", tags=[plural])
    alias = f"{noun}_id"
    one = f"/{{{alias}}}"

    async def changed(database: Database, task_id: str, viewer: Viewer) -> Wire:
        async with database.read() as session:
            return shown.changed(**{noun: (await show(session, [await get(session, kind, task_id)], viewer))[0]})

    @router.post("", openapi_extra={"requestBody": _BODY}, response_model=shown.launched, name=f"launch_{noun}")
    async def launch(
        request: Request,
        user: User,
        blobs: BlobsDep,
        commands: CommandsDep,
        database: DatabaseDep,
        offloader: OffloaderDep,
        settings: SettingsDep,
        viewer: ViewerDep,
    ) -> Wire:
        """``files``: the official client's list of files; ``contextHash``: a context that was uploaded before."""
        try:
            sent = await read_submission(request, "files", blobs, offloader, settings, rest_limit=MAX_CONFIG_CHARACTERS)
            body = schemas.LaunchBody.model_validate(sent)
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None
        submitted = CommandSubmission(
            kind,
            body.config or {},
            body.context_hash or None,
            body.workspace_id or None,
            body.template_name,
            context_notes=tuple(sent.get(NOTES, ())),
        )
        launched = await commands.launch(submitted, user)
        async with database.read() as session:
            (task,) = await show(session, [await get(session, kind, launched.task.id)], viewer(user))
        fields = {noun: task, "config": schemas.shown_config(launched.task), "notes": list(launched.warnings)}
        return shown.launched(**fields)

    @router.get("", response_model=shown.several, name=f"list_{plural}")
    async def list_tasks(
        principal: Anyone, session: Read, viewer: ViewerDep, asked: Annotated[CommandQuery, Query()]
    ) -> Wire:
        owners = None
        if asked.users or asked.user_ids:
            owners = {*asked.user_ids, *await list_queries.ids_of_names(session, asked.users)}
        wanted = repository.Selection(kind.kind, owners, asked.workspace_id)
        by: repository.Order = column_of(asked.sort_by, _ORDERS, "created_at")
        descending = is_descending(asked.order_by)
        total = await repository.count(session, wanted)
        window = Window.of(asked.offset, asked.limit, total)
        rows = await repository.page(
            session, wanted, by=by, descending=descending, offset=window.offset, limit=window.limit
        )
        pagination = window.pagination(total, len(rows), asked.limit)
        return shown.several(**{plural: await show(session, rows, viewer(principal)), "pagination": pagination})

    @router.get(one, response_model=shown.one, name=f"get_{noun}")
    async def get_task(
        task_id: Annotated[str, Path(alias=alias)], principal: Anyone, session: Read, viewer: ViewerDep
    ) -> Wire:
        row = await get(session, kind, task_id)
        (task,) = await show(session, [row], viewer(principal))
        return shown.one(**{noun: task, "config": schemas.shown_config(row)})

    @router.post(f"{one}/kill", response_model=shown.changed, name=f"kill_{noun}")
    async def kill(
        task_id: Annotated[str, Path(alias=alias)],
        user: Owner,
        commands: CommandsDep,
        database: DatabaseDep,
        viewer: ViewerDep,
    ) -> Wire:
        await commands.kill(kind, task_id, user)
        return await changed(database, task_id, viewer(user))

    @router.post(f"{one}/set_priority", response_model=shown.changed, name=f"set_{noun}_priority")
    async def set_priority(
        task_id: Annotated[str, Path(alias=alias)],
        body: schemas.PriorityBody,
        user: Owner,
        commands: CommandsDep,
        database: DatabaseDep,
        viewer: ViewerDep,
    ) -> Wire:
        await commands.set_priority(kind, task_id, body.priority, user)
        return await changed(database, task_id, viewer(user))

    return router


routers = tuple(map(routes_of, SHOWN))
