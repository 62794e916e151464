"""``JsonFormatter``: log records as one line of JSON."""

import json
import logging
import sys

from determined.link.json_log import JsonFormatter


def record(message: str, *values: object, **more: object) -> logging.LogRecord:
    created = logging.LogRecord("determined_agent.daemon", logging.WARNING, "", 0, message, values, None)
    created.__dict__.update(more)
    return created


def test_a_record_becomes_one_json_object_with_its_ids() -> None:
    line = JsonFormatter().format(record("container %s\nended", "c-1", container_id="c-1", task_id=""))
    assert "\n" not in line
    entry = json.loads(line)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "WARNING",
        "logger": "determined_agent.daemon",
        "message": "container c-1\nended",
        "container_id": "c-1",
    }


def test_a_traceback_is_part_of_the_json_object() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        line = JsonFormatter().format(record("failed", exc_info=sys.exc_info()))
    assert json.loads(line)["error"].endswith("ValueError: wrong")
