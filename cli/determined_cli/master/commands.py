"""Commands of ``det master``."""

import sys
from argparse import Namespace

from determined.client import master
from determined_cli import browser, connection, render


def info(args: Namespace) -> None:
    """Needs no login. A full disk is reported on stderr."""
    session = connection.anonymous(args.options)
    render.show_object(args.format or "yaml", render.snake(master.info(session)))
    full = master.full_storages(session)
    if full:
        sys.stderr.write(f"the master's disk is full or fails ({', '.join(full)}): trials wait\n")


def config(args: Namespace) -> None:
    """As the master runs it, secrets masked."""
    render.show_object(args.format or "yaml", master.config(connection.connect(args.options)))


def open_page(args: Namespace) -> None:
    """The link goes to stdout, so that it can be piped to whatever opens it."""
    link = browser.new_link(connection.connect(args.options))
    sys.stdout.write(f"{link}\n")
    sys.stdout.flush()
    if sys.stdout.isatty() and browser.has_desktop() and not args.no_browser:
        browser.show(link)


def logs(args: Namespace) -> None:
    """Entry by entry."""
    session = connection.connect(args.options)
    for entry in master.logs(session, follow=args.follow, limit=args.tail):
        level = str(entry.get("level") or "").removeprefix("LOG_LEVEL_")
        text = str(entry.get("message") or "").rstrip("\n")
        sys.stdout.write(f"{entry.get('timestamp')} [{level}]: {text}\n")
        if args.follow:
            sys.stdout.flush()
