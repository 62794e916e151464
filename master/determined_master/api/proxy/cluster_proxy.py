"""``/proxy/TASK:PORT/...`` at the master's own address: serves programs with a token, and leads browsers to the task's
origin. Nothing of a task is served to a cookie here: its page would act with the rights of the cluster's."""

import logging
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from determined.errors import ApiError, DeterminedError, Forbidden, NotFound, Unauthenticated
from determined_master.api.proxy.failures import failure_page
from determined_master.api.proxy.http_forwarding import AnswerCut, Forwarding
from determined_master.api.proxy.origin_app import target_of
from determined_master.api.proxy.plain_pages import HEADERS, plain_page
from determined_master.api.proxy.tunnel_endpoint import TunnelEndpoint
from determined_master.api.proxy.websocket_forwarding import serve_websocket
from determined_master.api.proxy_prefix import MAX_LENGTH
from determined_master.auth.authentication import COOKIE, Authenticator, bearer
from determined_master.proxy import cross_origin, headers, service_name
from determined_master.proxy.service_name import ServiceName
from determined_master.proxy.task_pages import TaskPages
from determined_master.proxy.visits import SignIn, Visit

logger = logging.getLogger(__name__)
PREFIX = "/proxy/"
SEE_OTHER = 303


class ClusterProxy(BaseRoute):
    """The route of ``/proxy/``, for every method and for websockets."""

    def __init__(self, pages: TaskPages, authenticator: Authenticator, tunnels: TunnelEndpoint) -> None:
        self._pages, self._authenticator, self._tunnels = pages, authenticator, tunnels

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_ours = scope["type"] in ("http", "websocket") and scope["path"].startswith(PREFIX)
        return (Match.FULL, {}) if is_ours else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(WebSocket(scope, receive, send))
            return
        response = await self._http(scope, receive, send)
        if response is not None:
            await response(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Returns an answer of the master's own, or None after the task has answered."""
        asked = Headers(raw=scope["headers"])
        accept = asked.get("accept", "")
        try:
            name = _service_in(scope["path"])
            if bearer(asked.get("authorization")) is None and cross_origin.is_navigation(scope["method"], asked):
                return RedirectResponse(_entrance(scope, name), SEE_OTHER, dict(HEADERS))
            if headers.are_too_large(scope["headers"]):
                return plain_page(accept, 431, "Too many headers", "The headers have more than 64 KiB.")
            visit = await self._program(asked, name)
        except ApiError as error:
            return plain_page(accept, error.status, "No page of a task", error.message)
        pool = self._pages.network.pool(visit.service, visit.sign_in.user)
        forwarding = Forwarding(visit.service, pool, may_cache=True, is_sandboxed=True)
        with self._pages.visits.program(visit):
            try:
                await visit.run(forwarding.pass_on(scope, receive, send, _own_target(scope)))
            except AnswerCut as problem:
                logger.info("the answer of %s was cut: %s", visit.service, problem)
            except Exception as problem:
                return failure_page(accept, visit.service, problem)
        return None

    async def _websocket(self, socket: WebSocket) -> None:
        try:
            service = _service_in(socket.scope["path"])
            if await self._tunnels.takes(socket, service):
                await self._tunnels.serve(socket, service)
                return
            visit = await self._program(socket.headers, service)
            connection = await self._pages.network.connect(visit.service, visit.sign_in.user)
        except DeterminedError as error:
            status = error.status if isinstance(error, ApiError) else 502
            await socket.send_denial_response(plain_page("", status, "No websocket of a task", error.message))
            return
        with self._pages.visits.program(visit):
            await serve_websocket(visit, connection, socket, _own_target(socket.scope))

    async def _program(self, asked: Headers, name: ServiceName) -> Visit:
        """Returns the visit of a program with a token. Raises Unauthenticated, and what ``TaskPages.find`` raises."""
        token = bearer(asked.get("authorization"))
        cookies = cookie_parser(asked.get("cookie", ""))
        if token is None or self._authenticator.cookie in cookies or COOKIE in cookies:
            raise Unauthenticated(
                "programs send a token in Authorization: Bearer, and no cookie of the cluster; browsers open pages of "
                "tasks from the task's page, or with `det task open`"
            )
        given = {"authorization": f"Bearer {token}"}
        user = await self._authenticator.principal(given, {})
        if user.is_task:
            raise Forbidden("a task token opens no pages of tasks; this requires a user's login")
        sign_in = SignIn(self._authenticator, given, {}, user)
        service, owner_id = await self._pages.find(sign_in, name.task_id, name.port)
        return Visit(service, owner_id, sign_in)


def _service_in(path: str) -> ServiceName:
    """Raises NotFound."""
    service = service_name.parse(path.removeprefix(PREFIX).partition("/")[0])
    if service is None:
        raise NotFound("no such service: an address begins with /proxy/TASK/ or /proxy/TASK:PORT/")
    return service


def _own_target(scope: Scope) -> bytes:
    """Returns path and query without the prefix of a proxy, which may hold ``/proxy/`` too: a task that is configured
    with this address as its base gets it."""
    target = target_of(scope)
    path, first = target.partition(b"?")[0], max(0, target.find(PREFIX.encode()))
    at = first
    while 0 <= at <= MAX_LENGTH:
        if unquote(path[at:].decode("latin-1")) == scope["path"]:
            return target[at:]
        at = path.find(PREFIX.encode(), at + 1)
    return target[first:]


def _entrance(scope: Scope, name: ServiceName) -> str:
    """Returns the address, relative to this one, at which a browser gets a ticket."""
    target = _own_target(scope).decode("latin-1")
    depth, path = target.partition("?")[0].count("/") - 1, quote(target, safe="")
    query = f"port={name.port}&" if name.port else ""
    return f"{'../' * depth}detent/tasks/{quote(name.task_id, safe='')}/enter?{query}path={path}"
