"""Log lines of master and agent as JSON, one object a line, for programs that collect logs."""

import json
import logging
from datetime import datetime, timezone

RELATED = ("agent_id", "container_id", "allocation_id", "task_id")
"""Attributes of a record that name what it is about."""


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON.

    ``time`` is UTC in RFC 3339; ``level``, ``logger`` and ``message`` are texts; ``error`` is the traceback, if there
    is one. Ids of what the line is about are members of their own.

    >>> record = logging.LogRecord("agent", logging.INFO, "", 0, "slot %d is free", (3,), None)
    >>> json.loads(JsonFormatter().format(record))["message"]
    'slot 3 is free'
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        entry: dict[str, str] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: str(value) for name in RELATED if (value := getattr(record, name, None))}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)
