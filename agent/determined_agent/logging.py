"""Configures the agent's own log: one line per event on standard error, with the related ids."""

import logging
import sys
import time

_NAMES = ("agent_id", "container_id", "allocation_id", "task_id")


class _Lines(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        facts = [f"{name}={value}" for name in _NAMES if (value := getattr(record, name, None))]
        return f"{text} ({' '.join(facts)})" if facts else text


def configure(level: str) -> None:
    """Sets up the root logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("websockets").setLevel(logging.WARNING)
