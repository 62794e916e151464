"""Sign-in, sign-out and users."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from determined_master.api import session_cookie
from determined_master.api.dependencies import Admin, Anyone, ClockDep, NoLogin, Read, Self, SettingsDep, UsersDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.rate_limit import limited_sign_in
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import BoundedInt, Empty, RowId
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of, refuse_given
from determined_master.auth.authentication import COOKIE
from determined_master.users import list_queries, repository

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
    with limited_sign_in(request, body.username, clock.now()):
        token, row = await users.login(body.username, body.password, is_hashed=body.is_hashed)
    session_cookie.set_cookie(response, request, settings, token, name=COOKIE)
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
    by: list_queries.UserOrder = column_of(sort_by, _ORDERS, "id")
    wanted = list_queries.UserFilter(active, admin, name)
    total = await list_queries.count_users(session, wanted)
    window = Window.of(offset, limit, total)
    rows = await list_queries.page_of_users(
        session, wanted, by=by, descending=is_descending(order_by), offset=window.offset, limit=window.limit
    )
    pagination = window.pagination(total, len(rows), limit)
    return schemas.UsersAnswer(users=[schemas.user(row) for row in rows], pagination=pagination)


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


_ORDERS: dict[str, list_queries.UserOrder] = {
    "SORT_BY_DISPLAY_NAME": "display_name",
    "SORT_BY_USER_NAME": "username",
    "SORT_BY_NAME": "name",
    "SORT_BY_ADMIN": "admin",
    "SORT_BY_ACTIVE": "active",
    "SORT_BY_REMOTE": "remote",
    "SORT_BY_MODIFIED_TIME": "modified_at",
    "SORT_BY_LAST_AUTH_TIME": "last_auth_at",
}
