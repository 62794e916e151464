"""A link that signs a browser in, once; and the browser, where there is a desktop to show it on."""

import os
import sys
from collections.abc import Mapping

from determined.client.session import Session


def new_link(session: Session, username: str | None = None) -> str:
    """The whole address. Its token stands behind ``#``, which browsers send to nobody."""
    path = session.post("/detent/sign-in/links", {"username": username} if username else {})["path"]
    return f"{session.master.rstrip('/')}{path}"


def has_desktop(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def show(link: str) -> None:
    """Whatever goes wrong with a browser is no concern of the cluster: the link is on the terminal."""
    from webbrowser import Error, open_new_tab

    try:
        open_new_tab(link)
    except (Error, OSError):
        pass
