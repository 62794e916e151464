"""Configures logging: one line per record on stderr; the newest are kept for ``det master logs``."""

import logging
import sys
from collections import deque

from determined.link.json_log import JsonFormatter

OwnLog = deque[tuple[int, float, str, str]]
"""Number, time, level and text of the newest lines."""
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RecentRecords(logging.Handler):
    """Keeps the newest records in memory, numbered."""

    def __init__(self, lines: OwnLog) -> None:
        super().__init__()
        self._lines = lines
        self._count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._count += 1
        self._lines.append((self._count, record.created, record.levelname, self.format(record)))


def configure(level: str, lines: OwnLog, *, as_json: bool = False) -> None:
    root = logging.getLogger()
    root.setLevel(level.upper())
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(JsonFormatter() if as_json else logging.Formatter(FORMAT))
    kept = RecentRecords(lines)
    kept.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    root.handlers[:] = [stream, kept]
    logging.getLogger("alembic").setLevel("WARNING")
