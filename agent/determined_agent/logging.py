"""Configures the agent's own log: one line per event on standard error, with the related ids."""

import logging
import sys
import time

from determined.link.json_log import RELATED, JsonFormatter


class _Lines(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        facts = [f"{name}={value}" for name in RELATED if (value := getattr(record, name, None))]
        return f"{text} ({' '.join(facts)})" if facts else text


def configure(level: str, *, as_json: bool = False) -> None:
    """Sets up the root logger."""
    lines = _Lines("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else lines)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in ("websockets", "httpx"):  # which log every message and every request
        logging.getLogger(library).setLevel(logging.WARNING)
