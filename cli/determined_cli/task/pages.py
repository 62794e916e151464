"""``det task open`` and ``det trial open``: a port of a task in the browser, at an origin of its own."""

from argparse import Namespace

from determined.client import ids, trials
from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli import connection
from determined_cli.terminal import browser

MAX_PORT = 65535


def open_page(args: Namespace) -> None:
    """Prints the address of a port of a task, and opens it."""
    session = connection.connect(args.options)
    _open(args, session, ids.resolve(session, "task", args.task_id))


def open_page_of_trial(args: Namespace) -> None:
    """The same for a trial."""
    session = connection.connect(args.options)
    _open(args, session, str(trials.get(session, args.trial_id)["taskId"]))


def port_of(text: str | None) -> int | None:
    """Returns a port, or None for none. Raises BadRequest.

    >>> port_of("8888"), port_of(None)
    (8888, None)
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_PORT)) and 0 < int(text) <= MAX_PORT):
        raise BadRequest(f"'{text}' is no port: ports are numbers from 1 to {MAX_PORT}")
    return int(text)


def _open(args: Namespace, session: Session, task_id: str) -> None:
    body = {"port": port_of(args.port), "path": args.path}
    url = str(session.post(f"/detent/tasks/{task_id}/open", body)["url"])
    print(url, flush=True)
    if not args.no_browser and browser.has_desktop():
        browser.show(url)
