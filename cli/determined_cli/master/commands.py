"""Commands of ``det master``."""

import sys
from argparse import Namespace

from determined.client import master
from determined_cli import connection
from determined_cli.output import render
from determined_cli.terminal import browser


def info(args: Namespace) -> None:
    """Prints the master's health and version. A full disk is reported on stderr. Needs no sign-in."""
    session = connection.anonymous(args.options)
    render.show_object(args.format or "yaml", render.snake(master.info(session)))
    full = master.full_storages(session)
    if full:
        sys.stderr.write(
            f"the master's disk is full or cannot be written ({', '.join(full)}); trials wait until it can be written\n"
        )


def config(args: Namespace) -> None:
    """Prints the master's configuration with masked secrets."""
    render.show_object(args.format or "yaml", master.config(connection.connect(args.options)))


def open_page(args: Namespace) -> None:
    """Prints a sign-in link to stdout, so that it can be piped."""
    link = browser.new_link(connection.connect(args.options))
    sys.stdout.write(f"{link}\n")
    sys.stdout.flush()
    if sys.stdout.isatty() and browser.has_desktop() and not args.no_browser:
        browser.show(link)


def logs(args: Namespace) -> None:
    """Prints the master's log."""
    session = connection.connect(args.options)
    for entry in master.logs(session, follow=args.follow, limit=args.tail):
        level = str(entry.get("level") or "").removeprefix("LOG_LEVEL_")
        text = str(entry.get("message") or "").rstrip("\n")
        sys.stdout.write(f"{entry.get('timestamp')} [{level}]: {text}\n")
        if args.follow:
            sys.stdout.flush()
