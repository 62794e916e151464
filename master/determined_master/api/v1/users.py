"""Sign-in, sign-out and users."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from determined_master.api import session_cookie
from determined_master.api.dependencies import Admin, Anyone, ClockDep, NoLogin, Read, Self, SettingsDep, UsersDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import page
from determined_master.api.rate_limit import limited_sign_in
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import BoundedInt, Empty, RowId
from determined_master.api.sorting import refuse_given, sort
from determined_master.authentication import COOKIE
from determined_master.db.models import UserRow
from determined_master.users import repository

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["users"])


@router.post("/auth/login", dependencies=[NoLogin])
async def login(
    body: schemas.LoginBody,
    request: Request,
    response: Response,
    clock: ClockDep,
    settings: SettingsDep,
    users: UsersDep,
) -> schemas.LoginAnswer:
    with limited_sign_in(request, clock.now()):
        token, row = await users.login(body.username, body.password, is_hashed=body.is_hashed)
    session_cookie.give(response, request, settings, token, name=COOKIE)
    return schemas.LoginAnswer(token=token, user=schemas.user(row))


@router.post("/auth/logout")
async def logout(principal: Anyone, users: UsersDep) -> Empty:
    await users.logout(principal)
    return Empty()


@router.get("/me")
async def me(principal: Anyone, session: Read) -> schemas.UserAnswer:
    return schemas.UserAnswer(user=schemas.user(await repository.get(session, principal.user_id)))


@router.get("/auth/user")
async def current(principal: Anyone, session: Read) -> schemas.UserAnswer:
    return schemas.UserAnswer(user=schemas.user(await repository.get(session, principal.user_id)))


@router.get("/users")
async def list_users(
    _principal: Anyone,
    session: Read,
    active: bool | None = None,
    admin: bool | None = None,
    name: str = "",
    role_id: Annotated[list[BoundedInt], Query(alias="roleIdAssignedDirectlyToUser")] = [],  # noqa: B006
    sort_by: Annotated[str, Query(alias="sortBy")] = "",
    order_by: Annotated[str, Query(alias="orderBy")] = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.UsersAnswer:
    refuse_given(roleIdAssignedDirectlyToUser=role_id)
    rows = [
        row
        for row in await repository.all_users(session)
        if (active is None or row.active == active)
        and (admin is None or row.admin == admin)
        and name.lower() in f"{row.username} {row.display_name}".lower()
    ]
    sort(rows, sort_by, order_by, _SORT)
    shown, pagination = page(rows, offset, limit)
    return schemas.UsersAnswer(users=[schemas.user(row) for row in shown], pagination=pagination)


@router.post("/users")
async def create_user(body: schemas.PostUserBody, admin: Admin, users: UsersDep) -> schemas.UserAnswer:
    row = await users.create(
        admin,
        body.user.username,
        admin=body.user.admin,
        display_name=body.user.display_name or "",
        password=body.password or "",
        is_hashed=body.is_hashed,
        active=body.user.active,
        agent_user_group=body.user.agent_user_group.model_dump(by_alias=False) if body.user.agent_user_group else None,
    )
    return schemas.UserAnswer(user=schemas.user(row))


@router.get("/users/{user_id}")
async def get_user(user_id: RowId, _principal: Anyone, session: Read) -> schemas.UserAnswer:
    return schemas.UserAnswer(user=schemas.user(await repository.get(session, user_id)))


@router.get("/users/{username}/by-username")
async def get_user_by_name(username: str, _principal: Anyone, users: UsersDep) -> schemas.UserAnswer:
    return schemas.UserAnswer(user=schemas.user(await users.get_by_name(username)))


@router.patch("/users/{user_id}")
async def change_user(user_id: RowId, body: schemas.PatchUserBody, user: Self, users: UsersDep) -> schemas.UserAnswer:
    changes = body.model_dump(exclude_unset=True, by_alias=False)
    return schemas.UserAnswer(user=schemas.user(await users.change(user, user_id, changes)))


_SORT: dict[str, Callable[[UserRow], Any]] = {
    "SORT_BY_DISPLAY_NAME": lambda row: (row.display_name, row.id),
    "SORT_BY_USER_NAME": lambda row: (row.username, row.id),
    "SORT_BY_NAME": lambda row: (row.display_name or row.username, row.id),
    "SORT_BY_ADMIN": lambda row: (row.admin, row.id),
    "SORT_BY_ACTIVE": lambda row: (row.active, row.id),
    "SORT_BY_REMOTE": lambda row: (row.remote, row.id),
    "SORT_BY_MODIFIED_TIME": lambda row: (row.modified_at, row.id),
    "SORT_BY_LAST_AUTH_TIME": lambda row: (row.last_auth_at.timestamp() if row.last_auth_at else 0.0, row.id),
}
