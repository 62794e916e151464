"""Opens pages of tasks: gives their users tickets for the origins at which the pages are served."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from determined.errors import ApiError, BadRequest, Unauthenticated
from determined_master.api.dependencies import AuthenticatorDep, NoLogin, Owner, SettingsDep, TaskPagesDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.proxy.plain_pages import HEADERS, plain_page
from determined_master.api.proxy.visitors import cluster_address, place_of, sign_in_of
from determined_master.api.proxy_prefix import prefix_of
from determined_master.api.schemas.base import Wire
from determined_master.proxy.service_name import MAX_PORT
from determined_master.proxy.visits import MAX_PATH_CHARACTERS

router = APIRouter(prefix="/detent/tasks/{task_id}", tags=["detent"], route_class=JsonRoute)
SEE_OTHER = 303
_OWN = ("same-origin", "none")

Port = Annotated[int | None, Field(ge=1, le=MAX_PORT)]
Path = Annotated[str, Field(max_length=MAX_PATH_CHARACTERS)]


class OpenBody(Wire):
    """``port``: of the task's chief; by default the declared one. ``path``: where the page begins."""

    port: Port = None
    path: Path = "/"


class OpenAnswer(Wire):
    """``url``: opens the page in a browser, once and within half a minute."""

    url: str


@router.post("/open")
async def open_page(
    task_id: str,
    body: OpenBody,
    user: Owner,
    request: Request,
    pages: TaskPagesDep,
    authenticator: AuthenticatorDep,
    settings: SettingsDep,
) -> OpenAnswer:
    """Returns the address of a port of a task for a browser."""
    sign_in = sign_in_of(request, authenticator, user)
    cluster = cluster_address(request, settings)
    url = await pages.open(sign_in, task_id, body.port, checked_path(body.path), place_of(request), cluster)
    return OpenAnswer(url=url)


@router.api_route("/enter", methods=["GET", "POST"], dependencies=[NoLogin], include_in_schema=False)
async def enter(
    task_id: str,
    request: Request,
    pages: TaskPagesDep,
    authenticator: AuthenticatorDep,
    settings: SettingsDep,
    port: Annotated[int | None, Query(ge=1, le=MAX_PORT)] = None,
    path: Annotated[str, Query(max_length=MAX_PATH_CHARACTERS)] = "/",
) -> Response:
    """Leads a signed-in browser to a port of a task. A page of another origin cannot: its visitor is asked first."""
    accept = request.headers.get("accept", "")
    if request.method == "GET" and request.headers.get("sec-fetch-site") not in _OWN:
        text = f"Open {_named(task_id, port)}? Its page comes from the task and has no rights on this cluster."
        return plain_page(accept, 200, "Open a page of a task", text, button="Open")
    try:
        user = await authenticator.principal({"cookie": request.headers.get("cookie", "")}, request.cookies)
        if user.is_task:
            raise Unauthenticated("a task opens no pages")
        sign_in = sign_in_of(request, authenticator, user, has_token=False)
        place, cluster = place_of(request), cluster_address(request, settings)
        url = await pages.open(sign_in, task_id, port, checked_path(path), place, cluster)
    except Unauthenticated:
        link = (f"{prefix_of(request, settings.base_path)}/sign-in", "Sign in")
        text = "Sign in, then open the page of the task again."
        return plain_page(accept, 401, "You are not signed in", text, link=link)
    except ApiError as error:
        return plain_page(accept, error.status, f"Cannot open {_named(task_id, port)}", error.message)
    return RedirectResponse(url, SEE_OTHER, dict(HEADERS))


def checked_path(path: str) -> str:
    """Returns a path of the origin itself. Raises BadRequest for what a browser may read as another host."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\"))
    if not is_own or not path.isprintable():
        raise BadRequest("path: a path of the task's page begins with one slash")
    return path


def _named(task_id: str, port: int | None) -> str:
    return f"port {port} of task {task_id}" if port else f"task {task_id}"
