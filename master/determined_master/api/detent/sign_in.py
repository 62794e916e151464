"""Sign-in from a browser, by a one-time link or a password; sign-out; the current session."""

from fastapi import APIRouter, Request, Response

from determined import __version__
from determined.errors import BadRequest, Forbidden
from determined_master.api import session_cookie
from determined_master.api.dependencies import (
    Anyone,
    AuthenticatorDep,
    ClockDep,
    NoLogin,
    Read,
    SettingsDep,
    User,
    UserOrOperator,
    UsersDep,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.rate_limit import limited_sign_in
from determined_master.api.schemas import page as schemas
from determined_master.api.schemas.base import Empty
from determined_master.api.schemas.users import user as shown
from determined_master.db.models import UserRow
from determined_master.users import pool_account
from determined_master.users import repository as user_rows
from determined_master.users.service import Users

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["page"])

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@router.post("/sign-in/links")
async def make_sign_in_link(
    body: schemas.SignInLinkBody, request: Request, user: UserOrOperator, users: UsersDep
) -> schemas.SignInLink:
    """Creates a one-time link: users for themselves, the owner of the data folder on this machine for any user."""
    if user is None:
        _from_this_machine(request)
        if not body.username:
            raise BadRequest("username is missing")
        username, actor = body.username, "the owner of the data folder"
    else:
        if body.username not in (None, user.username):
            raise Forbidden("you can create a sign-in link only for yourself")
        username = actor = user.username
    token, expires_at = await users.make_link(username, actor)
    return schemas.SignInLink(path=f"/sign-in#{token}", expires_at=expires_at)


@router.post("/sign-in", dependencies=[NoLogin])
async def sign_in(
    body: schemas.SignInBody,
    request: Request,
    response: Response,
    authenticator: AuthenticatorDep,
    clock: ClockDep,
    settings: SettingsDep,
    users: UsersDep,
) -> schemas.SignInAnswer:
    with limited_sign_in(request, "" if body.token else body.username or "", clock.now()):
        token, row = await _open(users, body)
    session_cookie.set_cookie(response, request, settings, token, name=authenticator.cookie)
    principal = await authenticator.principal({"authorization": f"Bearer {token}"}, {})
    return schemas.SignInAnswer(user=shown(row), session_id=str(principal.session_id))


@router.post("/sign-out")
async def sign_out(
    user: User,
    request: Request,
    response: Response,
    authenticator: AuthenticatorDep,
    settings: SettingsDep,
    users: UsersDep,
) -> Empty:
    """Signs out; the session's streams end."""
    await users.logout(user)
    session_cookie.delete_cookie(response, request, settings, authenticator)
    return Empty()


@router.get("/session")
async def get_session(
    principal: Anyone, session: Read, request: Request, clock: ClockDep, settings: SettingsDep
) -> schemas.PageSession:
    page = request.app.state.page_files.page
    return schemas.PageSession(
        user=shown(await user_rows.get(session, principal.user_id)),
        version=__version__,
        build=page.build if page else "",
        cluster_name=settings.cluster_name,
        payers={name: account for name, pool in settings.pools.items() if (account := pool_account.payer(pool))},
        now=clock.now(),
    )


async def _open(users: Users, body: schemas.SignInBody) -> tuple[str, UserRow]:
    if body.token:
        return await users.login_by_link(body.token)
    if not body.username:
        raise BadRequest("give a token, or a username and a password")
    return await users.login(body.username, body.password or "", is_hashed=False)


def _from_this_machine(request: Request) -> None:
    """Checks that the request comes from this machine, where the owner of the data folder is: the token in it stands
    for that owner, and a copy elsewhere makes no links."""
    client = request.client.host if request.client else ""
    server = (request.scope.get("server") or ("",))[0]
    is_forwarded = "x-forwarded-for" in request.headers
    if is_forwarded or (client not in LOOPBACK and client != server):
        raise Forbidden("the data folder's token can create links only on the master's own machine")
