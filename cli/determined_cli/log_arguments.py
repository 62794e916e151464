"""Arguments that select log lines."""

from __future__ import annotations

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser

LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_arguments(parser: ArgumentParser) -> None:
    """Options of every command that prints a trial's log."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-f", "--follow", action="store_true", help="go on until the trial ends")
    which.add_argument("--head", type=int, metavar="N", help="the first N lines")
    which.add_argument("--tail", type=int, metavar="N", help="the last N lines")
    for name, help in (
        ("allocation-id", "of this try"),
        ("agent-id", "from this agent"),
        ("container-id", "from this container"),
        ("rank-id", "from this rank; -1 for lines without one"),
        ("source", "task, agent or master"),
        ("stdtype", "stdout or stderr"),
    ):
        kind = int if name == "rank-id" else str
        parser.add_argument(f"--{name}", action="append", type=kind, help=f"only lines {help} (may be repeated)")
    parser.add_argument("--level", choices=LEVELS, help="this level and above")
    parser.add_argument("--timestamp-before", metavar="TIME", help="RFC 3339")
    parser.add_argument("--timestamp-after", metavar="TIME", help="RFC 3339")
    parser.add_argument("--search-text", metavar="TEXT", help="only lines that contain it")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
