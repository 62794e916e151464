"""Arguments that select log lines."""

from __future__ import annotations

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser

LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_arguments(parser: ArgumentParser) -> None:
    """Options of every command that prints a trial's log."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-f", "--follow", action="store_true", help="follow the log until the trial ends")
    which.add_argument("--head", type=int, metavar="N", help="print the first N lines")
    which.add_argument("--tail", type=int, metavar="N", help="print the last N lines")
    for name, help in (
        ("allocation-id", "of this allocation"),
        ("agent-id", "from this agent"),
        ("container-id", "from this container"),
        ("rank-id", "from this rank; -1 for lines without one"),
        ("source", "from this source: task, agent or master"),
        ("stdtype", "from this stream: stdout or stderr"),
    ):
        kind = int if name == "rank-id" else str
        parser.add_argument(f"--{name}", action="append", type=kind, help=f"only lines {help} (repeatable)")
    parser.add_argument("--level", choices=LEVELS, help="only lines of this level and above")
    parser.add_argument("--timestamp-before", metavar="TIME", help="RFC 3339 time, for example 2026-01-31T12:00:00Z")
    parser.add_argument("--timestamp-after", metavar="TIME", help="RFC 3339 time, for example 2026-01-31T12:00:00Z")
    parser.add_argument("--search-text", metavar="TEXT", help="only lines that contain this text")
    parser.add_argument("--long", action="store_true", help="print whole lines, with date and agent, on a terminal too")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def first_error_argument(parser: ArgumentParser) -> None:
    """Option of the commands that print the log of a trial."""
    parser.add_argument(
        "--first-error",
        action="store_true",
        help="print only the first error with its traceback; the log page jumps to the same line",
    )
