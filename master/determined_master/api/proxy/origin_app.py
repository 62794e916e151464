"""The application that answers at the origins of tasks. It serves nothing of the cluster and takes no sign-in of it."""

import logging
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from determined.errors import DeterminedError
from determined_master.api.proxy.failures import failure_page
from determined_master.api.proxy.http_forwarding import AnswerCut, Forwarding
from determined_master.api.proxy.plain_pages import HEADERS, plain_page
from determined_master.api.proxy.websocket_forwarding import serve_websocket
from determined_master.errors import StorageUnavailable
from determined_master.proxy import cookies, cross_origin, headers
from determined_master.proxy.addresses import label_in
from determined_master.proxy.origins import Origin
from determined_master.proxy.task_pages import ENTER, TaskPages
from determined_master.proxy.visits import MAX_PATH_CHARACTERS, Visit

logger = logging.getLogger(__name__)
SEE_OTHER = 303
_SECURE = ("https", "wss")
MAX_TICKET_CHARACTERS = 64


class OriginApp:
    """ASGI application. With ports, the listening port names the task; with subdomains, ``Host`` does."""

    def __init__(self, pages: TaskPages) -> None:
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        origin = self._origin_of(scope)
        if origin is not None:
            self._pages.origins.note_use(origin)
        if scope["type"] == "websocket":
            await self._websocket(WebSocket(scope, receive, send), origin)
            return
        try:
            response = await self._http(scope, receive, send, origin)
        except StorageUnavailable as problem:
            response = _try_again(headers.text(scope["headers"], b"accept"), problem)
        if response is not None:
            await response(scope, receive, send)

    def _origin_of(self, scope: Scope) -> Origin | None:
        origins = self._pages.origins
        if origins.has_ports:
            return origins.at_port((scope.get("server") or ("", 0))[1] or 0)
        label = label_in(headers.text(scope["headers"], b"host"), origins.layout.domain)
        return origins.at_label(label) if label else None

    async def _http(self, scope: Scope, receive: Receive, send: Send, origin: Origin | None) -> Response | None:
        """Returns an answer of the master's own, or None after the task has answered."""
        asked = Headers(raw=scope["headers"])
        accept = asked.get("accept", "")
        if origin is None:
            text = "The master has forgotten this address. Open it again from its task's page, or with `det task open`."
            return plain_page(accept, 404, "Nothing is open here", text)
        if headers.are_too_large(scope["headers"]):
            return plain_page(accept, 431, "Too many cookies", "The headers of the request have more than 64 KiB.")
        if scope["path"] == ENTER:
            return await self._enter(scope, origin)
        refusal = cross_origin.refusal(scope["method"], _last_values(asked))
        if refusal is None and self._pages.origins.has_ports and asked.get("service-worker") == "script":
            refusal = "a service worker would outlive its task at this port; an administrator can set proxy_domain"
        if refusal is not None:
            return plain_page(accept, 403, "Refused", f"{refusal}.".capitalize())
        visit = await self._visit_of(scope, origin)
        if visit is None:
            return self._not_entered(scope, origin, asked)
        return await self._pass_on(scope, receive, send, origin, visit)

    async def _pass_on(
        self, scope: Scope, receive: Receive, send: Send, origin: Origin, visit: Visit
    ) -> Response | None:
        service = origin.service
        forwarding = Forwarding(
            service,
            self._pages.network.pool(service, visit.sign_in.user),
            may_cache=not self._pages.origins.has_ports,
        )
        try:
            await visit.run(forwarding.pass_on(scope, receive, send, target_of(scope)))
        except AnswerCut as problem:
            logger.info(
                "the answer of %s was cut: %s", service, problem
            )  # the connection is closed: the visitor notices
        except Exception as problem:
            return failure_page(headers.text(scope["headers"], b"accept"), service, problem)
        return None

    async def _websocket(self, socket: WebSocket, origin: Origin | None) -> None:
        asked = _last_values(socket.headers)
        is_refused = (
            origin is None
            or headers.are_too_large(socket.scope["headers"])
            or cross_origin.refusal("GET", asked, is_websocket=True) is not None
        )
        try:
            visit = None if origin is None or is_refused else await self._visit_of(socket.scope, origin)
        except StorageUnavailable as problem:
            await socket.send_denial_response(_try_again("", problem))
            return
        if origin is None or visit is None:
            await socket.close()  # answered with 403
            return
        try:
            connection = await self._pages.network.connect(origin.service, visit.sign_in.user)
        except DeterminedError as problem:
            await socket.send_denial_response(failure_page("", origin.service, problem))
            return
        await serve_websocket(visit, connection, socket, target_of(socket.scope))

    async def _enter(self, scope: Scope, origin: Origin) -> Response:
        """Takes a ticket, and leads on to an address without it."""
        text = next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])), "")
        redeemed = None
        if scope["method"] == "GET" and len(text) <= MAX_TICKET_CHARACTERS:
            redeemed = await self._pages.visits.redeem(text, origin.service)
        if redeemed is None:
            return self._again(origin, headers.text(scope["headers"], b"accept"), 403, "/")
        value, ticket = redeemed
        answer = RedirectResponse(ticket.path, SEE_OTHER, dict(HEADERS))
        if self._pages.origins.has_ports:
            # Of another task that was at this port before.
            answer.headers["clear-site-data"] = '"cache", "storage"'
        is_secure = scope["scheme"] in _SECURE
        name = cookies.visit_name(origin.service.label, is_secure=is_secure)
        answer.set_cookie(name, value, httponly=True, samesite="lax", secure=is_secure, path="/")
        return answer

    async def _visit_of(self, scope: Scope, origin: Origin) -> Visit | None:
        name = cookies.visit_name(origin.service.label, is_secure=scope["scheme"] in _SECURE)
        given = cookies.values(headers.texts(scope["headers"], b"cookie"), name)
        return await self._pages.visits.find(given, origin.service)

    def _not_entered(self, scope: Scope, origin: Origin, asked: Headers) -> Response:
        path = target_of(scope).decode("latin-1")
        accept = asked.get("accept", "")
        if cross_origin.is_navigation(scope["method"], asked):
            return RedirectResponse(_entrance(origin, path), SEE_OTHER, dict(HEADERS))
        return self._again(origin, accept, 401, "/")

    def _again(self, origin: Origin, accept: str, status: int, path: str) -> Response:
        text = "The address was used before, is older than half a minute, or you are no longer signed in."
        return plain_page(accept, status, f"Open {origin.service} again", text, link=(_entrance(origin, path), "Open"))


def target_of(scope: Scope) -> bytes:
    """Returns path and query of a request as they came."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    query: bytes = scope["query_string"]
    return path + (b"?" + query if query else b"")


def choose_by_host(origins: ASGIApp, cluster: ASGIApp, domain: str) -> ASGIApp:
    """Returns an application that serves origins of tasks below ``domain``, and the cluster at every other host."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_request = scope["type"] in ("http", "websocket")
        is_below = is_request and label_in(headers.text(scope["headers"], b"host"), domain) is not None
        await (origins if is_below else cluster)(scope, receive, send)

    return serve


def _entrance(origin: Origin, path: str) -> str:
    """Returns the address of the cluster at which a signed-in user gets a ticket for an origin."""
    opened = origin.opened
    path = path if len(path) <= MAX_PATH_CHARACTERS else "/"
    task = quote(opened.task_id, safe="")
    return f"{opened.cluster}/detent/tasks/{task}/enter?port={opened.port}&path={quote(path, safe='')}"


def _try_again(accept: str, problem: StorageUnavailable) -> Response:
    """Returns the answer to a visitor whose sign-in cannot be looked at."""
    return plain_page(accept, problem.status, "The page cannot be opened now", problem.message)


def _last_values(asked: Headers) -> dict[str, str]:
    return dict(asked.items())
