"""Who asks for a page of a task, and how they have reached the master."""

from fastapi import Request

from determined_master.api.proxy_prefix import prefix_of
from determined_master.auth.authentication import COOKIE, SESSION_HEADER, Authenticator
from determined_master.auth.principal import Principal
from determined_master.proxy.addresses import Place
from determined_master.proxy.visits import SignIn
from determined_master.settings.settings import Settings


def sign_in_of(request: Request, authenticator: Authenticator, user: Principal, *, has_token: bool = True) -> SignIn:
    """Returns the sign-in of a request. ``has_token``: False if only its cookies counted."""
    shown = ("cookie", SESSION_HEADER, *(("authorization",) if has_token else ()))
    headers = {name: request.headers[name] for name in shown if name in request.headers}
    names = (authenticator.cookie, COOKIE)
    cookies = {name: value for name, value in request.cookies.items() if name in names}
    return SignIn(authenticator, headers, cookies, user)


def place_of(request: Request) -> Place:
    server = request.scope.get("server") or ("127.0.0.1", 0)
    return Place(request.url.scheme, request.headers.get("host") or f"{server[0]}:{server[1]}")


def cluster_address(request: Request, settings: Settings) -> str:
    """Returns the address of the cluster's pages without a slash at its end."""
    place = place_of(request)
    return f"{place.scheme}://{place.host}{prefix_of(request, settings.base_path)}"
