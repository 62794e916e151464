"""Opens the page in a browser with a one-time sign-in link."""

import os
import sys
from collections.abc import Mapping

from determined.client.session import Session


def new_link(session: Session, username: str | None = None) -> str:
    """Returns the full address. The token is in the fragment, which browsers send to no server."""
    path = session.post("/detent/sign-in/links", {"username": username} if username else {})["path"]
    return f"{session.master.rstrip('/')}{path}"


def has_desktop(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def show(link: str) -> None:
    """Opens the link. Errors of the browser are ignored: the link is also printed on the terminal."""
    from webbrowser import Error, open_new_tab

    try:
        open_new_tab(link)
    except (Error, OSError):
        pass
